import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { Db } from 'mongodb';
import { createPaymentActivities } from '../../activities/payments';
import { createPayoutActivities } from '../../activities/payouts';
import { createLogger } from '../../src/base/log';
import { connectMongo } from '../../src/base/mongo';
import { ACCEPT_WITHIN_MS } from '../../src/domain/payout/accept-within';
import { createStores } from '../../src/store';
import type { PaymentDocument } from '../../src/store/payments';
import { connectTemporal } from '../../src/temporal/connect';
import { inLoops } from '../measure/load';
import type { WorkerResult } from './book';

const PAYOUT_EVERY = 10;
/** Minor units of a payout: less than the settlement before it, so that the balance suffices. */
const PAYOUT_AMOUNT = 900;
const PAUSE_MS = 200;
const START_MS_MAX = 120_000;
const POLL_MS = 20;

/** Runs the activities of settlements and payouts, as workflows would, without Temporal. */
async function main(): Promise<WorkerResult> {
  const { MONGODB_URI = '', MONGODB_DB, BENCH_WORKER = '0/1', BENCH_CONCURRENCY } = process.env;
  const [index = 0, workers = 1] = BENCH_WORKER.split('/').map(Number);
  const mongo = await connectMongo(MONGODB_URI, `bench-worker-${index}`);
  const stores = createStores(mongo.db(MONGODB_DB));
  const log = createLogger('bench', 'silent');
  // Never called, since these merchants have no endpoint.
  const temporal = connectTemporal({ address: 'localhost:1', namespace: 'none' });
  const posts = { payment_settled: 0, payout_reserved: 0 };
  const { post } = stores.ledger;
  stores.ledger.post = async (entry, session) => {
    const { kind } = entry;
    if (kind === 'payment_settled' || kind === 'payout_reserved') posts[kind] += 1;
    await post(entry, session);
  };
  const deps = { mongo, stores, temporal, log, webhookQueue: 'none' };
  const payments = createPaymentActivities({ ...deps, payTokenKey: randomBytes(32) });
  const payouts = createPayoutActivities(deps);

  const all = await mongo.db(MONGODB_DB).collection<PaymentDocument>('payments').find().toArray();
  const own = all.filter((_, n) => n % workers === index);
  const payout_ms: number[] = [];
  const result = { settlements: 0, payouts: 0, refused: 0, payout_ms };

  const settle = async ({ _id, account_id, livemode }: PaymentDocument): Promise<void> => {
    const from = { status: 'authorized', version: 3, transition: 3 } as const;
    const common = { resource_id: _id, account_id, livemode, request_id: _id, attention: null };
    const at = new Date().toISOString();
    const transition = { ...common, from, to: ['settled' as const], at, change: {} };
    await retry(() => payments.recordPaymentMove(transition));
    result.settlements += 1;
  };

  const payOut = async ({ account_id, livemode, currency }: PaymentDocument): Promise<void> => {
    const payout_id = randomUUID();
    const owner = { account_id, livemode, request_id: payout_id };
    const amounts = { amount: PAYOUT_AMOUNT, fee: 0, currency, balance_account: 'main' };
    const bank = { method: 'sepa_instant', connector: 'sandbox', recipient_id: payout_id };
    const routing = { account_id, livemode, ...amounts, ...bank };
    const request = { payout: { reference: null, metadata: '{}' }, routing };
    const key = { operation: 'createPayout', key: payout_id, fingerprint: '' };
    const now = new Date();
    await stores.idempotency.reserveKey({ ...owner, ...key, resource_id: payout_id, request }, now);
    const accept_by_ms = now.getTime() + ACCEPT_WITHIN_MS;
    const facts = { payout_id, ...routing, request_id: payout_id };
    const input = { ...facts, created_at: now.toISOString(), accept_by_ms };
    const requestedAt = performance.now();
    const opening = await retry(() => payouts.openPayout(input), accept_by_ms).catch(() => null);
    result.payouts += 1;
    if (opening?.outcome !== 'accepted') {
      result.refused += 1;
      await payouts.abandonPayout(input);
      return;
    }
    payout_ms.push(performance.now() - requestedAt);
    const from = { status: 'created', version: 1, transition: 1 } as const;
    const at = new Date().toISOString();
    const to = ['submitted' as const, 'sent' as const];
    const transition = {
      ...owner,
      resource_id: payout_id,
      from,
      to,
      at,
      attention: null,
      change: {},
    };
    await retry(() => payouts.recordPayoutMove(transition));
  };

  await waitForOthers(mongo.db(MONGODB_DB), index, workers);
  const began = performance.now();
  const concurrency = Number(BENCH_CONCURRENCY);
  const { signal } = new AbortController();
  await inLoops({ count: own.length, concurrency, signal }, async (n) => {
    const payment = own[n];
    if (payment === undefined) return;
    await settle(payment);
    if (n % PAYOUT_EVERY === PAYOUT_EVERY - 1) await payOut(payment);
  });
  const seconds = (performance.now() - began) / 1_000;
  await mongo.close();
  const conflicts = posts.payment_settled - result.settlements;
  const payout_conflicts = posts.payout_reserved - payout_ms.length;
  return { ...result, conflicts, payout_conflicts, seconds };
}

/** Waits until all workers have started, so that none works alone. @throws Error after two minutes */
async function waitForOthers(db: Db, index: number, workers: number): Promise<void> {
  const started = db.collection<{ _id: number }>('bench_workers');
  await started.insertOne({ _id: index });
  const deadline = Date.now() + START_MS_MAX;
  while ((await started.countDocuments()) < workers) {
    if (Date.now() > deadline) throw new Error('Not all workers have started.');
    await wait(POLL_MS);
  }
}

/** Repeats an activity until it succeeds, as its workflow does. */
async function retry<T>(step: () => Promise<T>, giveUpAt = Number.POSITIVE_INFINITY): Promise<T> {
  while (true) {
    try {
      return await step();
    } catch (error) {
      if (Date.now() > giveUpAt) throw error;
      await wait(PAUSE_MS * (1 + Math.random()));
    }
  }
}

main().then(
  (result) => {
    process.stdout.write(`${JSON.stringify(result)}\n`);
    process.exit(0);
  },
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
