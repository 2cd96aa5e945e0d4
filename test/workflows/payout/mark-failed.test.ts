import { randomUUID } from 'node:crypto';
import { Client } from '@temporalio/client';
import { createPayoutActivities } from '../../../activities/payouts';
import { createLogger } from '../../../src/base/log';
import { gate } from '../../support/gate';
import { eventually } from '../../support/http';
import { scriptedBank } from '../../support/workflow-setting';
import { instructions, PAYOUTS } from '../instructed';
import { MONEY, useLifecycles } from '../lifecycles';

// The time-skipping server loses an activity that ends while its cancellation is on the way.
const { setting, withUnsentPayout } = useLifecycles('real');

// A machine that stalls while the bank is asked uses up the seconds that an operator waits.
jest.retryTimes(3, { logErrorsBeforeRetry: true });

describe('a second instruction', () => {
  /** Two attempts, each held until it is let go; the bank knows neither while it is asked. */
  function heldTwice() {
    const [first, second] = [gate(), gate()];
    const bank = PAYOUTS.bank({
      send: [
        () => first.opened.then(() => 'loses the connection'),
        () => second.opened.then(() => 'taken'),
      ],
    });
    const sends = () => instructions(bank).filter((line) => line.startsWith('send ')).length;
    return { bank, first, second, sends };
  }

  test('waits for the first, and is not given when the payout is marked as failed meanwhile', async () => {
    const { bank, first, sends } = heldTwice();
    await withUnsentPayout(bank, async ({ handle, act, shows, stored, money }) => {
      await eventually('the connector to begin', async () => sends() === 1);
      const resubmitted = act('resubmit');
      await shows('resubmit');
      const marked = act('mark_failed');
      await shows('mark_failed');
      expect(sends()).toBe(1);
      first.release();
      expect(await marked).toMatchObject({ status: 'failed' });
      expect(await resubmitted).toMatchObject({ status: 'failed' });
      await handle.result();
      expect(sends()).toBe(1);
      expect(await money()).toMatchObject({ reserved: 0 });
      expect(await stored()).toMatchObject({ status: 'failed', attention: null });
    });
  });

  test('is waited for by an act that comes after the first one has ended', async () => {
    const { bank, first, second, sends } = heldTwice();
    await withUnsentPayout(bank, async ({ act, refusal, shows, endBy, stored }) => {
      await eventually('the connector to begin', async () => sends() === 1);
      const resubmitted = act('resubmit');
      await shows('resubmit');
      first.release();
      await eventually('the second attempt', async () => sends() === 2);
      const marked = refusal('mark_failed');
      await shows('mark_failed');
      second.release();
      expect(await marked).toMatchObject({ code: 'held_by_bank' });
      expect(await resubmitted).toMatchObject({ bank: 'sent', status: 'sent' });
      await endBy('completed');
      expect(await stored()).toMatchObject({ status: 'completed' });
    });
  });
});

test('an instruction is never left behind by a run that ends: its answer is applied first', async () => {
  const { opened, release } = gate();
  const bank = PAYOUTS.bank({ send: [() => opened.then(() => 'taken')] });
  await withUnsentPayout(bank, async ({ handle, signal, shows, stored }) => {
    await eventually('the connector to begin', async () => instructions(bank).length === 1);
    await signal('failed');
    await shows('**failed**');
    expect((await handle.describe()).status.name).toBe('RUNNING');
    release();
    await handle.result();
    expect(await stored()).toMatchObject({ status: 'failed', attention: 'moved_after_failed' });
  });
});

test('an answer that a worker had written as it died moves nothing after the failure', async () => {
  const { opened, release } = gate();
  const bank = PAYOUTS.bank({ send: [() => opened.then(() => 'taken')] });
  await withUnsentPayout(bank, async ({ id, input, handle, signal, shows, stored, ...payout }) => {
    await eventually('the connector to begin', async () => instructions(bank).length === 1);
    const { env, mongo, stores, queues } = setting;
    const temporal = new Client({ connection: env.connection });
    const log = createLogger('test', 'silent');
    const deps = { mongo, stores, temporal, webhookQueue: queues.webhooks, log };
    // What the workflow wrote in a task that its worker did not complete.
    await createPayoutActivities(deps).recordPayoutMove({
      ...{ resource_id: id, request_id: randomUUID(), account_id: input.account_id },
      ...{ livemode: false, from: { status: 'created', version: 1 }, to: ['submitted', 'sent'] },
      ...{ at: new Date().toISOString(), attention: null, change: {} },
    });
    await signal('failed');
    await shows('**failed**');
    release();
    await handle.result();
    expect(await stored()).toMatchObject({ status: 'failed', attention: null });
    expect(await payout.money()).toMatchObject(MONEY.untouched);
    expect(await payout.entryKinds()).not.toContain('payout_sent_held');
    expect(await payout.differences()).toEqual([]);
  });
});

test('a run ends with the word of the bank, also while no connector takes the instruction', async () => {
  await withUnsentPayout(
    scriptedBank(),
    async ({ shows, endBy }) => {
      await shows('**created**');
      expect(await endBy('failed')).toMatchObject({ status: 'failed' });
    },
    { connector: `nobody-${randomUUID().slice(0, 8)}` },
  );
});
