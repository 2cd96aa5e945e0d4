import { randomUUID } from 'node:crypto';
import { createPayoutActivities } from '../../../activities/payouts';
import type { PayoutInput, PayoutState } from '../../../src/domain/payout/workflow';
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
const { setting, buildDeps } = useLifecycles('real');

const NOT_ACCEPTED = 'temporarily_unavailable';

type Payout = ReturnType<typeof trackPayout>;

async function fundPayout(connector: string): Promise<Payout> {
  const input = payoutInput(connector);
  await fund(setting, input);
  return trackPayout(setting, input);
}

/** The workflow ends, and leaves no payout, no key and no journal entry; the bank was sent nothing. */
async function expectRefused(
  { id, handle, entryKinds, money }: Payout,
  { told }: ReturnType<typeof scriptedBank>,
): Promise<void> {
  const refused = { payout_id: id, status: 'refused', code: NOT_ACCEPTED };
  expect(await handle.result()).toMatchObject(refused);
  expect(await setting.stores.payouts.get(id)).toBeNull();
  expect(await setting.stores.idempotency.forResource(id)).toBeNull();
  expect(await entryKinds()).toEqual([]);
  expect(await money()).toEqual(MONEY.untouched);
  expect(told).toEqual([]);
}

test.concurrent.each([
  ['accept', 'payout-not-accepted-in-time', 5_000, /no money moves|not known yet/, false],
  ['refuse', 'payout-not-known-in-time', 6_000, /not known yet/, true],
])(
  'a payout that the database is too slow to %s is refused, and the API is answered in time',
  (...row) => {
    const [, history, answered_ms, words, isSlowToRefuse] = row;
    const { idempotency } = setting.stores;
    const { opened, release: resume } = gate();
    const delay =
      <Args extends unknown[], T>(act: (...args: Args) => Promise<T>) =>
      (...args: Args): Promise<T> =>
        opened.then(() => act(...args));
    const slow = { ...idempotency, clearRequest: delay(idempotency.clearRequest) };
    const release = isSlowToRefuse ? delay(idempotency.release) : idempotency.release;
    const bank = scriptedBank();
    return withBank(setting, bank, async (connector) => {
      const queue = `slow-${randomUUID()}`;
      const stores = { ...setting.stores, idempotency: { ...slow, release } };
      const stopWorkers = await setting.startWorkers(queue, stores);
      try {
        const payout = await fundPayout(connector);
        const began = Date.now();
        expect(await refusalOf(openPayout(setting, payout.input, queue))).toEqual({
          code: NOT_ACCEPTED,
          message: expect.stringMatching(words),
        });
        const took_ms = Date.now() - began;
        expect(took_ms).toBeGreaterThanOrEqual(answered_ms - 200);
        // A request may take 8 s; the rest is for a busy machine.
        expect(took_ms).toBeLessThan(60_000);
        resume();
        await expectRefused(payout, bank);
        await saveHistory(payout.handle, history);
      } finally {
        resume();
        await stopWorkers();
      }
    });
  },
);

describe('a payout that no worker accepts in time', () => {
  /** Opens a payout on a queue that a worker serves only once its time is over. */
  const withLateWorker = (
    meanwhile: (input: PayoutInput) => Promise<unknown>,
    story: (
      payout: Payout,
      bank: ReturnType<typeof scriptedBank>,
      opening: ReturnType<typeof openPayout>,
    ) => Promise<void>,
  ) => {
    const bank = scriptedBank();
    return withBank(setting, bank, async (connector) => {
      const payout = await fundPayout(connector);
      const queue = `away-${randomUUID()}`;
      const opening = openPayout(setting, payout.input, queue);
      const refusal = refusalOf(opening);
      await eventually('the start', () => payout.handle.describe().catch(() => null));
      await setting.env.sleep('6s');
      await meanwhile(payout.input);
      const stopWorkers = await setting.startWorkers(queue);
      try {
        await story(payout, bank, opening);
      } finally {
        await refusal;
        await stopWorkers();
      }
    });
  };

  test.concurrent('is refused for good', () =>
    withLateWorker(
      async () => undefined,
      async (payout, bank, opening) => {
        expect(await refusalOf(opening)).toMatchObject({ code: NOT_ACCEPTED });
        await expectRefused(payout, bank);
        await saveHistory(payout.handle, 'payout-no-worker-in-time');
      },
    ));

  /** Asks again once it is sent: a busy machine may not know in its last second what was accepted. */
  async function readOpened(
    { handle, becomes }: Payout,
    opening: ReturnType<typeof openPayout>,
  ): Promise<PayoutState> {
    const refusal = await refusalOf(opening);
    if (refusal?.code !== NOT_ACCEPTED) return (await opening).opened;
    expect(refusal.message).toMatch(/not known yet/i);
    await becomes({ status: 'sent' });
    return await handle.executeUpdate<PayoutState, []>('open');
  }

  test.concurrent('is sent when an attempt whose answer got lost has accepted it', () =>
    withLateWorker(
      async (input) => {
        const created_at = new Date().toISOString();
        const accept_by_ms = Date.now() + 60_000;
        const activities = createPayoutActivities(buildDeps());
        await activities.openPayout({ ...input, created_at, accept_by_ms });
      },
      async (payout, { told }, opening) => {
        const { id: payout_id, handle, becomes, money } = payout;
        const status = expect.stringMatching(/created|sent/);
        expect(await readOpened(payout, opening)).toMatchObject({ payout_id, status });
        await becomes({ status: 'sent' });
        expect(await money()).toEqual(MONEY.captured);
        expect(told).toEqual([`sendPayout ${payout_id}`]);
        await saveHistory(handle, 'payout-accepted-behind');
      },
    ));
});
