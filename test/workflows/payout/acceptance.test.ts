import { randomUUID } from 'node:crypto';
import { createPayoutActivities } from '../../../activities/payouts';
import { createLogger } from '../../../src/base/log';
import { saveHistory } from '../../support/histories';
import { eventually } from '../../support/http';
import { scriptedBank, useWorkflowSetting, withBank } from '../../support/workflow-setting';
import {
  fund,
  handleOf,
  MONEY,
  moneyOf,
  openPayout,
  payoutInput,
  postingsOf,
  refusalOf,
  storedPayout,
} from './setting';

// The deadline is held against the worker's clock, and 5 s are soon over.
const setting = useWorkflowSetting('real');

async function expectNothing(input: ReturnType<typeof payoutInput>): Promise<void> {
  const { payout_id } = input;
  expect(await setting.stores.payouts.get(payout_id)).toBeNull();
  expect(await setting.stores.idempotency.forResource(payout_id)).toBeNull();
  expect(await postingsOf(setting, payout_id)).toEqual([]);
  expect(await moneyOf(setting, input)).toEqual(MONEY.untouched);
}

/** A point that is not passed until it is opened. */
function createGate() {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

describe('a database that is too slow', () => {
  test.concurrent.each([
    ['to accept', 'payout-not-accepted-in-time', 5_000, /no money moves|not known yet/, false],
    ['even to refuse', 'payout-not-known-in-time', 6_000, /not known yet/, true],
  ])('%s: the API is answered in time, the payout is refused', async (...row) => {
    const [, history, answered_ms, words, isAway] = row;
    const { idempotency } = setting.stores;
    const gate = createGate();
    const later =
      <Args extends unknown[], T>(act: (...args: Args) => Promise<T>) =>
      (...args: Args): Promise<T> =>
        gate.opened.then(() => act(...args));
    const slow = { ...idempotency, clearRequest: later(idempotency.clearRequest) };
    const release = isAway ? later(idempotency.release) : idempotency.release;
    const queue = `slow-${randomUUID()}`;
    const stores = { ...setting.stores, idempotency: { ...slow, release } };
    const stopWorkers = await setting.startWorkers(queue, stores);
    const end = async () => {
      gate.open();
      await stopWorkers();
    };
    const bank = scriptedBank();
    await withBank(setting, bank, async (connector) => {
      const input = payoutInput(connector);
      await fund(setting, input);
      const { payout_id } = input;
      const began = Date.now();
      expect(await refusalOf(openPayout(setting, input, queue))).toEqual({
        code: 'temporarily_unavailable',
        message: expect.stringMatching(words),
      });
      const took_ms = Date.now() - began;
      expect(took_ms).toBeGreaterThanOrEqual(answered_ms - 200);
      // A request may take 8 s; the rest is for a busy machine.
      expect(took_ms).toBeLessThan(60_000);
      gate.open();
      expect(await handleOf(setting, payout_id).result()).toMatchObject({
        payout_id,
        status: 'refused',
        code: 'temporarily_unavailable',
      });
      await expectNothing(input);
      expect(bank.told).toEqual([]);
      await saveHistory(handleOf(setting, payout_id), history);
    }).finally(end);
  });
});

/** Opens a payout on a queue that no worker serves until its time is over. */
async function openLate(
  connector: string,
  meanwhile: (input: ReturnType<typeof payoutInput>) => Promise<void>,
) {
  const input = payoutInput(connector);
  await fund(setting, input);
  const queue = `away-${randomUUID()}`;
  const opening = openPayout(setting, input, queue);
  const refusal = refusalOf(opening);
  await eventually('the start', () =>
    handleOf(setting, input.payout_id)
      .describe()
      .catch(() => null),
  );
  await setting.env.sleep('6s');
  await meanwhile(input);
  const stopWorkers = await setting.startWorkers(queue);
  const end = async () => {
    await refusal;
    await stopWorkers();
  };
  return { input, opening, refusal, end };
}

test.concurrent('no worker was up in time: refused for good, its key is free, no money moves', async () => {
  const bank = scriptedBank();
  await withBank(setting, bank, async (connector) => {
    const { input, refusal, end } = await openLate(connector, async () => {});
    const { payout_id } = input;
    try {
      expect(await refusal).toMatchObject({ code: 'temporarily_unavailable' });
      expect(await handleOf(setting, payout_id).result()).toMatchObject({
        payout_id,
        status: 'refused',
        code: 'temporarily_unavailable',
      });
      await expectNothing(input);
      expect(bank.told).toEqual([]);
      await saveHistory(handleOf(setting, payout_id), 'payout-no-worker-in-time');
    } finally {
      await end();
    }
  });
});

test.concurrent('an attempt was accepted in time, though nobody heard of it: the payout goes on', async () => {
  const bank = scriptedBank();
  await withBank(setting, bank, async (connector) => {
    const { mongo, stores, env, queues } = setting;
    const activities = createPayoutActivities({
      mongo,
      stores,
      temporal: env.client,
      webhookQueue: queues.webhooks,
      log: createLogger('test', 'silent'),
    });
    const { input, opening, end } = await openLate(connector, async (asked) => {
      const created_at = new Date().toISOString();
      const accept_by_ms = Date.now() + 60_000;
      await activities.openPayout({ ...asked, created_at, accept_by_ms });
    });
    const { payout_id } = input;
    try {
      const { handle, opened } = await opening;
      expect(opened).toMatchObject({ payout_id, status: expect.stringMatching(/created|sent/) });
      await eventually('the payout to be sent', async () => {
        const { status } = await storedPayout(setting, payout_id);
        return status === 'sent';
      });
      expect(await moneyOf(setting, input)).toEqual(MONEY.captured);
      expect(bank.told).toEqual([`sendPayout ${payout_id}`]);
      await saveHistory(handle, 'payout-accepted-behind');
    } finally {
      await end();
    }
  });
});
