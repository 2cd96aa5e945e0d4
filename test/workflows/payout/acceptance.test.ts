import { randomUUID } from 'node:crypto';
import { createPayoutActivities } from '../../../activities/payouts';
import { createLogger } from '../../../src/base/log';
import type { PayoutState } from '../../../src/domain/payout/workflow';
import { gate } from '../../support/gate';
import { saveHistory } from '../../support/histories';
import { eventually } from '../../support/http';
import {
  fund,
  openPayout,
  payoutInput,
  scriptedBank,
  withBank,
} from '../../support/workflow-setting';
import { MONEY, refusalOf, trackPayout, useLifecycles } from '../lifecycles';

// The deadline is held against the worker's clock, and 5 s are soon over.
const { setting } = useLifecycles('real');

type Payout = ReturnType<typeof trackPayout>;

/** The workflow ends, and leaves no payout, no key and no journal entry. */
async function expectRefused({ id, handle, entryKinds, money }: Payout): Promise<void> {
  expect(await handle.result()).toMatchObject({
    payout_id: id,
    status: 'refused',
    code: 'temporarily_unavailable',
  });
  expect(await setting.stores.payouts.get(id)).toBeNull();
  expect(await setting.stores.idempotency.forResource(id)).toBeNull();
  expect(await entryKinds()).toEqual([]);
  expect(await money()).toEqual(MONEY.untouched);
}

describe('a database that is too slow', () => {
  test.concurrent.each([
    ['to accept', 'payout-not-accepted-in-time', 5_000, /no money moves|not known yet/, false],
    ['even to refuse', 'payout-not-known-in-time', 6_000, /not known yet/, true],
  ])('%s: the API is answered in time, the payout is refused', async (...row) => {
    const [, history, answered_ms, words, isAway] = row;
    const { idempotency } = setting.stores;
    const { opened, release: goOn } = gate();
    const later =
      <Args extends unknown[], T>(act: (...args: Args) => Promise<T>) =>
      (...args: Args): Promise<T> =>
        opened.then(() => act(...args));
    const slow = { ...idempotency, clearRequest: later(idempotency.clearRequest) };
    const release = isAway ? later(idempotency.release) : idempotency.release;
    const queue = `slow-${randomUUID()}`;
    const stores = { ...setting.stores, idempotency: { ...slow, release } };
    const stopWorkers = await setting.startWorkers(queue, stores);
    const end = async () => {
      goOn();
      await stopWorkers();
    };
    const bank = scriptedBank();
    await withBank(setting, bank, async (connector) => {
      const input = payoutInput(connector);
      await fund(setting, input);
      const payout = trackPayout(setting, input);
      const began = Date.now();
      expect(await refusalOf(openPayout(setting, input, queue))).toEqual({
        code: 'temporarily_unavailable',
        message: expect.stringMatching(words),
      });
      const took_ms = Date.now() - began;
      expect(took_ms).toBeGreaterThanOrEqual(answered_ms - 200);
      // A request may take 8 s; the rest is for a busy machine.
      expect(took_ms).toBeLessThan(60_000);
      goOn();
      await expectRefused(payout);
      expect(bank.told).toEqual([]);
      await saveHistory(payout.handle, history);
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
  const payout = trackPayout(setting, input);
  const opening = openPayout(setting, input, queue);
  const refusal = refusalOf(opening);
  await eventually('the start', () => payout.handle.describe().catch(() => null));
  await setting.env.sleep('6s');
  await meanwhile(input);
  const stopWorkers = await setting.startWorkers(queue);
  const end = async () => {
    await refusal;
    await stopWorkers();
  };
  return { payout, opening, refusal, end };
}

/** Asks again once it is sent: a busy machine may not know in its last second what was accepted. */
async function readOpened({
  payout,
  opening,
  refusal,
}: Awaited<ReturnType<typeof openLate>>): Promise<PayoutState> {
  const answer = await refusal;
  if (answer?.code !== 'temporarily_unavailable') return (await opening).opened;
  expect(answer.message).toMatch(/not known yet/i);
  await payout.becomes({ status: 'sent' });
  return await payout.handle.executeUpdate<PayoutState, []>('open');
}

test.concurrent('no worker was up in time: refused for good, its key is free, no money moves', async () => {
  const bank = scriptedBank();
  await withBank(setting, bank, async (connector) => {
    const { payout, refusal, end } = await openLate(connector, async () => {});
    try {
      expect(await refusal).toMatchObject({ code: 'temporarily_unavailable' });
      await expectRefused(payout);
      expect(bank.told).toEqual([]);
      await saveHistory(payout.handle, 'payout-no-worker-in-time');
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
    const late = await openLate(connector, async (asked) => {
      const created_at = new Date().toISOString();
      const accept_by_ms = Date.now() + 60_000;
      await activities.openPayout({ ...asked, created_at, accept_by_ms });
    });
    const { id: payout_id, handle, becomes, money } = late.payout;
    try {
      const opened = await readOpened(late);
      expect(opened).toMatchObject({ payout_id, status: expect.stringMatching(/created|sent/) });
      await becomes({ status: 'sent' });
      expect(await money()).toEqual(MONEY.captured);
      expect(bank.told).toEqual([`sendPayout ${payout_id}`]);
      await saveHistory(handle, 'payout-accepted-behind');
    } finally {
      await late.end();
    }
  });
});
