import { bookId } from '../../../src/ledger/entries';
import { withLock } from '../../../src/ledger/locks';
import { gate } from '../../support/gate';
import { saveHistory } from '../../support/histories';
import { withHeldUpdates } from '../../support/hold-updates';
import { eventually } from '../../support/http';
import {
  openRefund,
  refundInput,
  scriptedBank,
  settledPayment,
  withBank,
} from '../../support/workflow-setting';
import { useLifecycles } from '../lifecycles';

const { setting, withRefund } = useLifecycles('real');

test('a refund that finds its book locked frees its slot, and is accepted soon afterwards', () =>
  withBank(setting, scriptedBank(), async (connector) => {
    const payment = await settledPayment(setting, connector);
    const { opened: unlocked, release } = gate();
    const lock = withLock({ book: bookId(payment), by: 0 }, () => unlocked);
    const input = refundInput(payment);
    const opening = openRefund(setting, input);
    const handle = setting.env.client.workflow.getHandle(`refund:${input.refund_id}`);
    const delay = await eventually('the delay of the next attempt', async () => {
      const { raw } = await handle.describe().catch(() => ({ raw: {} }));
      const [first] = ('pendingActivities' in raw && raw.pendingActivities) || [];
      const failure = first?.lastFailure?.applicationFailureInfo;
      return failure?.type === 'no_lock' && failure.nextRetryDelay;
    });
    // Not with a back-off that grows to half a minute.
    expect(Number(delay.seconds)).toBeLessThan(25);
    release();
    await lock;
    expect((await opening).opened).toMatchObject({ status: 'processing', version: 1 });
  }));

test.each([
  [{ outcome: 'accepted', bank_reference: 'late' } as const, 'moved_after_failed'],
  [{ outcome: 'refused', code: 'closed', message: 'Closed.' } as const, null],
])('a refund that is being marked as failed while the bank answers %j: %s', (answer, attention) => {
  const { opened, release } = gate();
  const bank = scriptedBank({
    sendRefund: () => Promise.reject(new Error('connection reset')),
    lookUpRefund: () => opened.then(() => answer),
  });
  return withRefund(bank, async ({ handle, id, act, shows, stored, told }) => {
    await eventually('the look-up', async () => told.includes(`lookUpRefund ${id}`));
    const readPending = async () => (await handle.describe()).raw.pendingActivities ?? [];
    // While its updates are held, the transition is under way.
    const { marked } = await withHeldUpdates(setting.stores.refunds, async (reached) => {
      const sent = { marked: act('mark_failed') };
      try {
        await shows('operator ada: mark_failed');
        await eventually('the transition', async () =>
          (await readPending()).some(
            ({ activityType }) => activityType?.name === 'recordRefundMove',
          ),
        );
        await reached;
      } finally {
        release();
      }
      await eventually('the answer', async () => (await readPending()).length === 1);
      return sent;
    });
    expect(await marked).toMatchObject({ status: 'failed' });
    expect(await handle.result()).toMatchObject({ status: 'failed' });
    expect(await stored()).toMatchObject({ status: 'failed', attention });
    if (attention !== null) await saveHistory(handle, 'refund-accepted-after-marked-failed');
  });
});
