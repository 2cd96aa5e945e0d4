import type { CallbackName, CallbackResource } from '../../../src/domain/callback/callback';
import { callback } from '../../support/workflow-setting';
import { ACT, type Tracked, useLifecycles } from '../lifecycles';

const { setting, withStatus } = useLifecycles();

const HOUR_MS = 3_600_000;

/** Stores a callback as signalled, whose signal Temporal has lost. */
async function lose(
  resource: CallbackResource,
  { id, connector }: { id: string; connector: string },
  name: CallbackName,
): Promise<void> {
  const body = callback();
  const received_at = new Date().toISOString();
  const { callbacks } = setting.stores;
  const about = { connector, resource, resource_id: id, name };
  const { _id } = await callbacks.insertOnce({ ...about, body, received_at });
  await callbacks.markSignalled({ _id }, received_at);
}

/** Terminates the workflow and starts it again, as `orphan restart` does. */
async function startAgain({ handle, restart }: Pick<Tracked, 'handle' | 'restart'>): Promise<void> {
  await handle.terminate('in a test');
  await restart();
}

test.each([
  ['payment', 'authorized', 'settled', 'settled'],
  ['refund', 'processing', 'settled', 'settled'],
  ['payout', 'sent', 'completed', 'completed'],
  ['payout', 'submitted', 'failed', 'failed'],
] as const)(
  'a %s that is %s applies a lost `%s` when it is started again',
  async (kind, at, name, status) => {
    await withStatus[at](async (resource: Tracked) => {
      const { connector } = await resource.stored();
      await lose(kind, { id: resource.id, connector }, name);
      await startAgain(resource);
      expect(await resource.handle.result()).toMatchObject({ status });
      const before = await resource.stored();
      await resource.restart();
      await resource.handle.result();
      expect(await resource.stored()).toEqual(before);
    });
  },
);

test('one that changes no status is applied once, also after it was acknowledged', async () => {
  await withStatus.awaiting_customer(async (payment) => {
    const { id, handle, restart, becomes } = payment;
    const { connector } = await payment.stored();
    await payment.act('cancel', { by: 'merchant' });
    await handle.result();
    await lose('payment', { id, connector }, 'reversal_failed');
    await restart();
    await becomes({ attention: 'late_settlement_not_reversed' });
    await handle.result();
    await payment.actAfterEnd('acknowledge');
    await restart();
    await handle.result();
    expect(await payment.stored()).toMatchObject({ status: 'cancelled', attention: null });
  });
});

test('a snooze outlives its run, and ends on time', async () => {
  const findDue = async (of: Tracked) => /, due (\S+)\./.exec(await of.shows(', due '))?.[1];
  await withStatus.authorized(async (payment) => {
    await setting.env.sleep('25h');
    await payment.becomes({ attention: 'settlement_overdue' });
    await payment.act('snooze', { ...ACT, hours: 72 });
    const due = await findDue(payment);
    await startAgain(payment);
    await payment.shows('Started again in flight');
    expect(await findDue(payment)).toBe(due);
    expect(Date.parse(due ?? '') - (await setting.env.currentTimeMs())).toBeGreaterThan(
      71 * HOUR_MS,
    );
    await payment.endBy('settled');
    expect(await payment.stored()).toMatchObject({ status: 'settled', attention: null });
  });
});
