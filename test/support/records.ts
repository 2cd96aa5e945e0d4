import { randomBytes, randomUUID } from 'node:crypto';
import { ApplicationFailure } from '@temporalio/activity';
import { createPaymentActivities } from '../../activities/payments';
import { createRefundActivities } from '../../activities/refunds';
import { connectTemporal } from '../../src/connect-temporal';
import { createLogger } from '../../src/log';
import { connectMongo } from '../../src/mongo';
import { createStores, ensureIndexes } from '../../src/store';
import { mongodbUri, temporalAddress } from './servers';

/** The real activities on a database of their own, with no workflow before them. */
export async function openRecords() {
  const mongo = await connectMongo(mongodbUri(), 'records');
  const db = mongo.db(`test_${randomUUID().slice(0, 8)}`);
  const stores = createStores(db);
  await ensureIndexes(stores);
  const temporal = connectTemporal({ address: temporalAddress(), namespace: 'default' });
  const log = createLogger('test', 'silent');
  const deps = { mongo, stores, temporal, log, webhookQueue: 'unused' };
  const payments = createPaymentActivities({ ...deps, payTokenKey: randomBytes(32) });
  const refunds = createRefundActivities(deps);
  const close = async () => {
    await db.dropDatabase();
    await mongo.close();
    await temporal.connection.close();
  };
  return { mongo, db, stores, payments, refunds, close };
}

export type Records = Awaited<ReturnType<typeof openRecords>>;

export interface PaymentFacts {
  payment_id: string;
  account_id: string;
  livemode: boolean;
  amount: number;
  currency: string;
  method: string;
  connector: string;
  request_id: string;
}

/** A payment that is authorised, at version 3. */
export async function authorizedPayment(
  { stores, payments }: Records,
  changes: Partial<PaymentFacts> = {},
): Promise<PaymentFacts> {
  const payment_id = randomUUID();
  const facts = {
    ...{ payment_id, account_id: `acct_${payment_id}`, livemode: false, amount: 1_000 },
    ...{ currency: 'EUR', method: 'ideal', connector: 'bank', request_id: 'req-1' },
    ...changes,
  };
  const customer = { email: null, first_name: null, last_name: null, reference: null };
  const urls = { success_url: 'https://s.example', error_url: 'https://e.example' };
  const routing = { ...facts, country: null, expires_in_seconds: 60, settlement_due_seconds: 60 };
  const stored = { reference: null, customer, metadata: '{}', ...urls };
  await claim(stores, 'createPayment', payment_id, facts, { stored, routing });
  const at = new Date().toISOString();
  const session = {
    outcome: 'opened',
    bank_reference: `ref-${payment_id}`,
    session_url: 'https://b.example',
  } as const;
  const { expires_in_seconds, ...opening } = routing;
  await payments.openPayment({ ...opening, created_at: at, expires_at: at, session });
  const from = { status: 'awaiting_customer', version: 2 } as const;
  await payments.recordMove({ ...facts, from, to: ['authorized'], at, attention: null });
  return facts;
}

/** Settles what `authorizedPayment` made. */
export async function settle({ payments }: Records, facts: PaymentFacts): Promise<void> {
  const from = { status: 'authorized', version: 3 } as const;
  const at = new Date().toISOString();
  await payments.recordMove({ ...facts, from, to: ['settled'], at, attention: null });
}

const ATTEMPTS_MAX = 10;

/** Asks for a refund as its workflow does; a repeat with the same id joins it. */
export async function openRefund(
  { stores, refunds }: Records,
  facts: PaymentFacts,
  amount: number | null,
  refund_id: string = randomUUID(),
) {
  const at = new Date().toISOString();
  const { payment_id, account_id, livemode, currency, method, connector, request_id } = facts;
  const routing = {
    ...{ payment_id, account_id, livemode, amount, currency, method, connector },
    ...{ accepted_at: at, due_seconds: 60 },
  };
  await claim(stores, 'createRefund', refund_id, facts, { refund: { reason: null }, routing });
  const input = { ...routing, refund_id, request_id, created_at: at };
  for (let attempt = 1; ; attempt += 1) {
    try {
      return { refund_id, opening: await refunds.openRefund(input) };
    } catch (error) {
      // As Temporal does with what may pass.
      if (attempt === ATTEMPTS_MAX || error instanceof ApplicationFailure) throw error;
    }
  }
}

/** Moves a refund that is processing, as its workflow does. */
export async function moveRefund(
  { refunds }: Records,
  { payment_id, account_id, livemode, request_id }: PaymentFacts,
  refund_id: string,
  to: 'settled' | 'failed',
) {
  return await refunds.recordRefundMove({
    ...{ refund_id, payment_id, account_id, livemode, request_id, to },
    from: { status: 'processing', version: 1 },
    at: new Date().toISOString(),
    attention: null,
    ...(to === 'failed' ? { failure: { code: 'refund_refused', message: 'No.' } } : {}),
  });
}

async function claim(
  { idempotency }: Records['stores'],
  operation: string,
  resource_id: string,
  { account_id, livemode, request_id }: PaymentFacts,
  request: Parameters<Records['stores']['idempotency']['claim']>[0]['request'],
): Promise<void> {
  await idempotency.claim(
    {
      ...{ account_id, livemode, operation, key: resource_id },
      ...{ fingerprint: 'f', resource_id, request, request_id },
    },
    new Date(),
  );
}
