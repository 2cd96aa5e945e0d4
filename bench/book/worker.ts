import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { createPaymentActivities } from '../../activities/payments';
import { createPayoutActivities } from '../../activities/payouts';
import { ACCEPT_WITHIN_MS } from '../../src/domain/payout-workflow';
import { constantRing } from '../../src/keys/ring';
import { createLogger } from '../../src/log';
import { connectMongo } from '../../src/mongo';
import { createStores } from '../../src/store';
import type { PaymentDocument } from '../../src/store/payments';
import { connectTemporal } from '../../src/temporal/connect';
import type { WorkerFigures } from './report';

/** Settlements to one payout. */
const PAYOUT_EVERY = 10;
/** Minor units of a payout; less than the settlement before it has brought, so it fits. */
const DRAWN = 900;
const PAUSE_MS = 200;

/** Steps of a worker as its workflows ask for them, with no Temporal before them. */
async function main(): Promise<WorkerFigures> {
  const { MONGODB_URI = '', MONGODB_DB, BENCH_WORKER = '0', BENCH_SLOTS = '1' } = process.env;
  const mongo = await connectMongo(MONGODB_URI, `bench-worker-${BENCH_WORKER}`);
  const stores = createStores(mongo.db(MONGODB_DB));
  const log = createLogger('bench', 'silent');
  // Never called, since these merchants have no endpoint.
  const temporal = connectTemporal({ address: 'localhost:1', namespace: 'none' });
  let posts = 0;
  const { post } = stores.ledger;
  stores.ledger.post = async (posting, session) => {
    if (posting.kind === 'payment_settled') posts += 1;
    await post(posting, session);
  };
  const deps = { mongo, stores, temporal, log, webhookQueue: 'none' };
  const payTokens = constantRing({ current: 'first', keys: { first: randomBytes(32) } });
  const payments = createPaymentActivities({ ...deps, payTokens });
  const payouts = createPayoutActivities(deps);

  const all = await mongo.db(MONGODB_DB).collection<PaymentDocument>('payments').find().toArray();
  const own = all.filter((_, n) => String(n % 2) === BENCH_WORKER);
  const figures = { settlements: 0, payouts: 0, refused: 0 };

  const settle = async ({ _id, account_id, livemode }: PaymentDocument): Promise<void> => {
    const from = { status: 'authorized', version: 3 } as const;
    const common = { resource_id: _id, account_id, livemode, request_id: _id, attention: null };
    const at = new Date().toISOString();
    const move = { ...common, from, to: ['settled' as const], at, change: {} };
    await insist(() => payments.recordPaymentMove(move));
    figures.settlements += 1;
  };

  const payOut = async ({ account_id, livemode, currency }: PaymentDocument): Promise<void> => {
    const payout_id = randomUUID();
    const owner = { account_id, livemode, request_id: payout_id };
    const amounts = { amount: DRAWN, fee: 0, currency, balance_account: 'main' };
    const bank = { method: 'sepa_instant', connector: 'sandbox', recipient_id: payout_id };
    const routing = { account_id, livemode, ...amounts, ...bank, can_be_returned: true };
    const request = { payout: { reference: null, metadata: '{}' }, routing };
    const key = { operation: 'createPayout', key: payout_id, fingerprint: '' };
    const now = new Date();
    await stores.idempotency.claim({ ...owner, ...key, resource_id: payout_id, request }, now);
    const accept_by_ms = now.getTime() + ACCEPT_WITHIN_MS;
    const facts = { payout_id, ...routing, request_id: payout_id };
    const input = { ...facts, created_at: now.toISOString(), accept_by_ms };
    const opening = await insist(() => payouts.openPayout(input), accept_by_ms).catch(() => null);
    figures.payouts += 1;
    if (opening?.outcome !== 'accepted') {
      figures.refused += 1;
      await payouts.abandonPayout(input);
      return;
    }
    const from = { status: 'created', version: 1 } as const;
    const at = new Date().toISOString();
    const to = ['submitted' as const, 'sent' as const];
    const move = { ...owner, resource_id: payout_id, from, to, at, attention: null, change: {} };
    await insist(() => payouts.recordPayoutMove(move));
  };

  const began = performance.now();
  let next = 0;
  const slot = async (): Promise<void> => {
    for (let n = next; n < own.length; n = next) {
      next += 1;
      const payment = own[n];
      if (payment === undefined) return;
      await settle(payment);
      if (n % PAYOUT_EVERY === PAYOUT_EVERY - 1) await payOut(payment);
    }
  };
  await Promise.all(Array.from({ length: Number(BENCH_SLOTS) }, slot));
  const seconds = (performance.now() - began) / 1_000;
  await mongo.close();
  return { ...figures, conflicts: posts - figures.settlements, seconds };
}

/** Repeats a step until it answers, as its workflow does. */
async function insist<T>(step: () => Promise<T>, giveUpAt = Number.POSITIVE_INFINITY): Promise<T> {
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
  (figures) => {
    process.stdout.write(`${JSON.stringify(figures)}\n`);
    process.exit(0);
  },
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
