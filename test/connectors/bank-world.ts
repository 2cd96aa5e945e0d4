import { randomBytes, randomUUID } from 'node:crypto';
import type { Collection, Db } from 'mongodb';
import type {
  PayoutInstruction,
  RefundInstruction,
  SessionInstruction,
} from '../../connectors/contract/activities';
import type { BookEntry } from '../../connectors/sandbox/book';
import type { OutboxRow } from '../../connectors/sandbox/outbox';
import type { BankSession } from '../../connectors/sandbox/sessions';
import { connectMongo } from '../../src/base/mongo';
import type { BankResource } from '../../src/domain/callback/callback';
import { paymentWorkflowId } from '../../src/domain/payment/payment';
import { payoutWorkflowId } from '../../src/domain/payout/payout';
import { refundWorkflowId } from '../../src/domain/refund/refund';
import type { CallbackDocument } from '../../src/store/callbacks';
import type { PaymentDocument } from '../../src/store/payments';
import type { PayoutDocument } from '../../src/store/payouts';
import type { RefundDocument } from '../../src/store/refunds';
import { useFixture } from '../support/fixture';
import { mongodbUri } from '../support/servers';
import {
  type BankServer,
  instruction,
  payoutInstruction,
  refundInstruction,
  startBankServer,
} from './bank-server';

const ROUTED = { connector: 'sandbox', account_id: 'acct_of_the_test' } as const;

type Routing = 'amount' | 'currency' | 'method' | 'livemode' | keyof typeof ROUTED;

/** Fields of a payment that a callback about it needs. */
type KnownPayment = Pick<PaymentDocument, '_id' | 'status' | Routing>;
type KnownRefund = Pick<RefundDocument, '_id' | 'status' | 'version' | Routing>;
type KnownPayout = Pick<PayoutDocument, '_id' | 'status' | 'version' | Routing>;

const WORKFLOW_IDS = {
  payment: paymentWorkflowId,
  refund: refundWorkflowId,
  payout: payoutWorkflowId,
};

type Planted = Pick<OutboxRow, 'resource' | 'resource_id' | 'name' | 'becomes'> &
  Partial<OutboxRow>;

export interface BankWorld {
  server: BankServer;
  /** The bank's own database. */
  own: Db;
  outbox: Collection<OutboxRow>;
  /** The bank's own books. */
  refunds: Collection<BookEntry>;
  payouts: Collection<BookEntry>;
  /** Opens a session for a payment that the product knows. */
  openFor: (
    change?: Partial<SessionInstruction>,
  ) => Promise<{ input: SessionInstruction; id: string; url: string }>;
  /** A refund that the product knows; nobody has instructed the bank yet. */
  knowRefund: (
    change?: Partial<RefundInstruction>,
    connector?: string,
  ) => Promise<{ input: RefundInstruction; id: string }>;
  /** A payout that the product knows; nobody has instructed the bank yet. */
  knowPayout: (
    change?: Partial<PayoutInstruction>,
    connector?: string,
  ) => Promise<{ input: PayoutInstruction; id: string }>;
  /** Sets the state that the product's document says from now on. */
  productSays: (resource: 'refund' | 'payout', id: string, status: string) => Promise<void>;
  /** The product has lost the document, as a restored database has. */
  productForgets: (resource: 'refund' | 'payout', id: string) => Promise<void>;
  decide: (url: string, form: Record<string, string>) => Promise<Response>;
  approve: (url: string) => Promise<Response>;
  rows: (resourceId: string) => Promise<OutboxRow[]>;
  /** A row of the outbox, due now. */
  plant: (row: Planted) => Promise<void>;
  /** The resource's first row, once it is done with. */
  doneRow: (resourceId: string) => Promise<OutboxRow | undefined>;
  /** Waits until all of the resource's rows were sent; answers the signals. */
  told: (resourceId: string, resource: BankResource) => Promise<string[]>;
  sessionOf: (paymentId: string) => Promise<BankSession | null>;
  callbacks: (resourceId: string) => Promise<CallbackDocument[]>;
  /** Names of the signals that the workflow received, in order. */
  signals: (resourceId: string, resource?: BankResource) => Promise<string[]>;
  end: () => Promise<void>;
}

/** A sandbox bank, and what a test looks at around it. */
export async function startBankWorld(): Promise<BankWorld> {
  const database = `test_bank_${randomBytes(6).toString('hex')}`;
  const mongo = await connectMongo(mongodbUri(), 'test-bank');
  const product = mongo.db(database);
  const own = mongo.db(`${database}_sandbox_bank`);
  const server = await startBankServer(mongo, database);
  const outbox = own.collection<OutboxRow>('outbox');

  const rows = (resource_id: string) =>
    outbox.find({ resource_id }).sort({ 'body.occurred_at': 1 }).toArray();
  const signals = async (id: string, resource: BankResource = 'payment') => {
    const handle = server.temporal.workflow.getHandle(WORKFLOW_IDS[resource](id));
    const history = await handle.fetchHistory().catch(() => undefined);
    return (history?.events ?? []).flatMap(
      (event) => event.workflowExecutionSignaledEventAttributes?.signalName ?? [],
    );
  };
  const decide = (url: string, form: Record<string, string>) =>
    // By path: after a restart the bank listens elsewhere.
    fetch(`${server.bank.url}${new URL(url).pathname}/decision`, {
      method: 'POST',
      redirect: 'manual',
      body: new URLSearchParams({ bank: 'Amber Bank', ...form }),
    });
  return {
    server,
    own,
    outbox,
    refunds: own.collection<BookEntry>('refunds'),
    payouts: own.collection<BookEntry>('payouts'),
    openFor: async (change = {}) => {
      const input = instruction(change);
      const { payment_id: _id, amount, currency, method, livemode } = input;
      const money = { amount, currency, method, livemode };
      const known: KnownPayment = { _id, status: 'settled', ...money, ...ROUTED };
      await product.collection<KnownPayment>('payments').insertOne(known);
      const answer = await server.bank.activities.openSession(input);
      if (answer.outcome !== 'opened') throw new Error(answer.message);
      return { input, id: input.payment_id, url: answer.session_url };
    },
    knowRefund: async (change = {}, connector = ROUTED.connector) => {
      const input = refundInstruction(change);
      const { refund_id: _id, amount, currency, method, livemode } = input;
      const routed = { amount, currency, method, livemode, ...ROUTED, connector };
      const known: KnownRefund = { _id, status: 'processing', version: 1, ...routed };
      await product.collection<KnownRefund>('refunds').insertOne(known);
      return { input, id: _id };
    },
    knowPayout: async (change = {}, connector = ROUTED.connector) => {
      const input = payoutInstruction(change);
      const { payout_id: _id, amount, currency, method, livemode } = input;
      const routed = { amount, currency, method, livemode, ...ROUTED, connector };
      const known: KnownPayout = { _id, status: 'sent', version: 1, ...routed };
      await product.collection<KnownPayout>('payouts').insertOne(known);
      return { input, id: _id };
    },
    productSays: async (resource, _id, status) => {
      const known = product.collection<{ _id: string }>(`${resource}s`);
      await known.updateOne({ _id }, { $set: { status } });
    },
    productForgets: async (resource, _id) => {
      await product.collection<{ _id: string }>(`${resource}s`).deleteOne({ _id });
    },
    decide,
    approve: (url) => decide(url, { decision: 'approve' }),
    rows,
    plant: async (row) => {
      const callback_id = `cb_${randomUUID()}`;
      await outbox.insertOne({
        _id: callback_id,
        body: { callback_id, occurred_at: new Date().toISOString() },
        state: 'pending',
        due_at: new Date(),
        attempts: 0,
        last_error: null,
        done_at: null,
        ...row,
      });
    },
    doneRow: async (id) => {
      const [first] = await until(
        () => rows(id),
        ([row]) => row?.done_at != null,
      );
      return first;
    },
    told: async (id, resource) => {
      await until(
        () => rows(id),
        (all) => all.length > 0 && all.every(({ state }) => state === 'sent'),
      );
      return await signals(id, resource);
    },
    sessionOf: (_id) => own.collection<BankSession>('sessions').findOne({ _id }),
    callbacks: (id) => server.inbox.stores.callbacks.forResource(id),
    signals,
    end: async () => {
      await server.stop();
      await product.dropDatabase();
      await mongo.close();
    },
  };
}

/** Asks until the answer satisfies, or fails with the last one. */
export async function until<T>(
  ask: () => Promise<T>,
  satisfies: (answer: T) => boolean,
): Promise<T> {
  const end = Date.now() + 90_000;
  for (;;) {
    const answer = await ask();
    if (satisfies(answer)) return answer;
    if (Date.now() > end) throw new Error(`still ${JSON.stringify(answer)}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

/** A sandbox bank for one file's tests. */
export function useBankWorld(): BankWorld {
  return useFixture(startBankWorld, (world) => world.end());
}
