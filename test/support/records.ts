import { randomBytes, randomUUID } from 'node:crypto';
import { createDisputeActivities } from '../../activities/disputes';
import { createMovements } from '../../activities/movements';
import { createPaymentActivities } from '../../activities/payments';
import { createPayoutActivities, type PayoutTransition } from '../../activities/payouts';
import { createRefundActivities } from '../../activities/refunds';
import { createLogger } from '../../src/base/log';
import { connectMongo, inTransaction } from '../../src/base/mongo';
import type { AcceptedRequest } from '../../src/domain/creation';
import type { PaymentInput } from '../../src/domain/payment/payment';
import type { PayoutInput } from '../../src/domain/payout/payout';
import { ENTRY_LINES } from '../../src/ledger/entry-lines';
import { createStores, ensureIndexes, type Stores } from '../../src/store';
import { connectTemporal } from '../../src/temporal/access';
import { retryUntilDone } from './eventually';
import { useFixture } from './fixture';
import { mongodbUri, temporalAddress } from './servers';

/**
 * The real activities, with no workflow before them.
 * @param database name of one that another has made; by default one of their own
 */
export async function openRecords(uri = mongodbUri(), database = `test_${randomUUID()}`) {
  const mongo = await connectMongo(uri, 'records');
  const db = mongo.db(database);
  const stores = createStores(db);
  await retryUntilDone(() => ensureIndexes(stores));
  const temporal = connectTemporal({ address: temporalAddress(), namespace: 'default' });
  const log = createLogger('test', 'silent');
  const deps = { mongo, stores, temporal, log, webhookQueue: 'unused' };
  const payments = createPaymentActivities({ ...deps, payTokenKey: randomBytes(32) });
  const refunds = createRefundActivities(deps);
  const payouts = createPayoutActivities(deps);
  const disputes = createDisputeActivities(deps);
  const movements = createMovements(deps);
  const close = async () => {
    await retryUntilDone(() => db.dropDatabase());
    await mongo.close();
    await temporal.connection.close();
  };
  return { mongo, db, stores, temporal, payments, refunds, payouts, disputes, movements, close };
}

export type Records = Awaited<ReturnType<typeof openRecords>>;

export function useRecords(): Records {
  return useFixture(openRecords, (records) => records.close());
}

type Money = 'amount' | 'currency' | 'method' | 'connector';
export type PaymentFacts = Pick<PaymentInput, 'payment_id' | keyof Owner | Money>;

export const authorizedPayment = (records: Records, changes: Partial<PaymentFacts> = {}) =>
  paymentAt(records, 'authorized', changes);

/** A payment that nobody has paid in time, at version 3. */
export const expiredPayment = (records: Records, changes: Partial<PaymentFacts> = {}) =>
  paymentAt(records, 'expired', changes);

async function paymentAt(
  { stores, payments }: Records,
  status: 'authorized' | 'expired',
  changes: Partial<PaymentFacts>,
): Promise<PaymentFacts> {
  const payment_id = changes.payment_id ?? randomUUID();
  const facts = {
    ...{ payment_id, account_id: `acct_${payment_id}`, livemode: false, amount: 1_000 },
    ...{ currency: 'EUR', method: 'ideal', connector: 'bank', request_id: 'req-1' },
    ...changes,
  };
  const customer = { reference: null, ciphertext: null };
  const urls = { success_url: 'https://s.example', error_url: 'https://e.example' };
  const routing = { ...facts, country: null, expires_in_seconds: 60, settlement_due_seconds: 60 };
  const stored = { reference: null, customer, metadata: '{}', ...urls };
  await retryUntilDone(() =>
    recordKey(stores, 'createPayment', payment_id, facts, { stored, routing }),
  );
  const at = new Date().toISOString();
  const bank_reference = `ref-${payment_id}`;
  const session = { outcome: 'opened', bank_reference, session_url: 'https://b.ex' } as const;
  const { expires_in_seconds, ...opening } = routing;
  const return_url = 'https://pay.example/return';
  await retryUntilDone(() =>
    payments.openPayment({ ...opening, return_url, created_at: at, expires_at: at, session }),
  );
  const from = { status: 'awaiting_customer', version: 2, transition: 2 } as const;
  const transition = { ...moved(payment_id, facts), from, to: [status], change: {} };
  await retryUntilDone(() => payments.recordPaymentMove(transition));
  return facts;
}

/** @param fee minor units that the acquirer keeps */
export async function settle({ payments }: Records, facts: PaymentFacts, fee = 0): Promise<void> {
  const from = { status: 'authorized', version: 3, transition: 3 } as const;
  const transition = moved(facts.payment_id, facts);
  await payments.recordPaymentMove({ ...transition, from, to: ['settled'], change: {}, fee });
}

type Owner = Pick<PaymentInput, 'account_id' | 'livemode' | 'request_id'>;

function moved(resource_id: string, { account_id, livemode, request_id }: Owner) {
  const at = new Date().toISOString();
  return { resource_id, account_id, livemode, request_id, at, attention: null };
}

/** Asks for a refund as its workflow does; a repeat with the same id, or under the same key, joins it. */
export async function openRefund(
  { stores, refunds }: Records,
  facts: PaymentFacts,
  amount: number | null,
  fresh_id: string = randomUUID(),
  key: string = fresh_id,
) {
  const at = new Date().toISOString();
  const { payment_id, account_id, livemode, currency, method, connector, request_id } = facts;
  const payment = { payment_id, account_id, livemode, amount, currency, method, connector };
  const routing = { ...payment, accepted_at: at, due_seconds: 60 };
  const request = { refund: { reason: null }, routing };
  const refund_id = await retryUntilDone(() =>
    recordKey(stores, 'createRefund', fresh_id, facts, request, key),
  );
  const input = { ...routing, refund_id, request_id, created_at: at };
  return { refund_id, opening: await retryUntilDone(() => refunds.openRefund(input)) };
}

export async function transitionRefund(
  { refunds }: Records,
  facts: PaymentFacts,
  refund_id: string,
  to: 'settled' | 'failed',
) {
  return await refunds.recordRefundMove({
    ...moved(refund_id, facts),
    from: { status: 'processing', version: 1, transition: 1 },
    to: [to],
    change: to === 'failed' ? { failure: { code: 'refund_refused', message: 'No.' } } : {},
  });
}

export type PayoutFacts = PayoutInput & { can_be_returned: boolean };

export function payoutInput(connector: string, changes: Partial<PayoutInput> = {}): PayoutInput {
  const payout_id = randomUUID();
  return {
    ...{ payout_id, account_id: `acct_${payout_id}`, livemode: false, amount: 1_000, fee: 25 },
    ...{ currency: 'EUR', method: 'sepa_instant', recipient_id: randomUUID() },
    ...{ balance_account: 'main', connector, request_id: 'req-3' },
    ...changes,
  };
}

export function payoutFacts(changes: Partial<PayoutFacts> = {}): PayoutFacts {
  return { ...payoutInput('bank', { fee: 0 }), can_be_returned: true, ...changes };
}

/** Longer than the tests that open hundreds of payouts at once. */
const ACCEPT_WITHIN_MS = 600_000;

/** Asks for a payout as its workflow does; a repeat with the same id, or under the same key, joins it. */
export async function openPayout(records: Records, facts: PayoutFacts, key?: string) {
  const input = await recordPayoutKey(records, facts, key);
  const opening = await retryUntilDone(() => records.payouts.openPayout(input));
  return { payout_id: input.payout_id, opening };
}

export async function recordPayoutKey(
  { stores }: Records,
  facts: PayoutFacts,
  key: string = facts.payout_id,
) {
  const { payout_id: fresh_id, request_id, ...routing } = facts;
  const request = { payout: { reference: null, metadata: '{}' }, routing };
  const payout_id = await retryUntilDone(() =>
    recordKey(stores, 'createPayout', fresh_id, facts, request, key),
  );
  const created_at = new Date().toISOString();
  const accept_by_ms = Date.now() + ACCEPT_WITHIN_MS;
  return { ...facts, payout_id, created_at, accept_by_ms };
}

export async function transitionPayout(
  { payouts }: Records,
  facts: PayoutFacts,
  from: PayoutTransition['from'],
  to: PayoutTransition['to'],
) {
  return await payouts.recordPayoutMove({
    ...moved(facts.payout_id, facts),
    // A bank reports each step by itself, and repeats its id.
    callback_id: `${facts.payout_id}:${to.join()}`,
    from,
    to,
    change: {
      ...(to.includes('failed') ? { failure: { code: 'payout_rejected', message: 'No.' } } : {}),
      ...(to.includes('returned') ? { returned: { code: 'AC04', reason: 'Account closed' } } : {}),
    },
  });
}

export async function fund(
  { mongo, stores }: Records,
  { account_id, livemode, currency, balance_account }: PayoutFacts,
  amount: number,
  id: string = randomUUID(),
): Promise<void> {
  const lines = ENTRY_LINES.funded(balance_account, amount);
  const at = new Date().toISOString();
  const entry = { resource_id: id, account_id, livemode, currency, at, lines };
  await inTransaction(mongo, (session) =>
    stores.ledger.post({ kind: 'funded', ...entry }, session),
  );
}

/**
 * Reserves a key as the API does first: fixes the id and keeps what Temporal must not hold.
 * @returns id of the resource that the key stands for: it may have been reserved before
 */
export async function recordKey(
  { idempotency }: Pick<Stores, 'idempotency'>,
  operation: string,
  resource_id: string,
  { account_id, livemode, request_id }: Owner,
  request: AcceptedRequest,
  key: string = resource_id,
): Promise<string> {
  const owner = { account_id, livemode, operation, key };
  const made = { fingerprint: 'f', resource_id, request, request_id };
  return (await idempotency.reserveKey({ ...owner, ...made }, new Date())).resource_id;
}
