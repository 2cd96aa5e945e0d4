import { randomBytes } from 'node:crypto';
import type { Collection, Db } from 'mongodb';
import type { RefundInstruction, SessionInstruction } from '../../connectors/contract/activities';
import type { OutboxRow } from '../../connectors/sandbox-bank/outbox';
import type { BankRefund } from '../../connectors/sandbox-bank/refunds';
import type { BankSession } from '../../connectors/sandbox-bank/sessions';
import type { CallbackResource } from '../../src/domain/callback';
import { paymentWorkflowId } from '../../src/domain/payment';
import { refundWorkflowId } from '../../src/domain/refund';
import { connectMongo } from '../../src/mongo';
import type { CallbackDocument } from '../../src/store/callbacks';
import type { PaymentDocument } from '../../src/store/payments';
import type { RefundDocument } from '../../src/store/refunds';
import { mongodbUri } from '../support/servers';
import { type BankServer, instruction, refundInstruction, startBankServer } from './bank-server';

const ROUTED = { connector: 'sandbox', account_id: 'acct_of_the_test' } as const;

type Routing = 'amount' | 'currency' | 'method' | 'livemode' | keyof typeof ROUTED;

/** What a callback needs to know of what it is about. */
type KnownPayment = Pick<PaymentDocument, '_id' | 'status' | Routing>;
type KnownRefund = Pick<RefundDocument, '_id' | 'status' | Routing>;

const WORKFLOW_IDS = { payment: paymentWorkflowId, refund: refundWorkflowId };

export interface BankWorld {
  server: BankServer;
  /** The bank's own database. */
  own: Db;
  outbox: Collection<OutboxRow>;
  /** The bank's own book of refunds. */
  book: Collection<BankRefund>;
  /** Opens a session for a payment that the product knows. */
  openFor: (
    change?: Partial<SessionInstruction>,
  ) => Promise<{ input: SessionInstruction; id: string; url: string }>;
  /** A refund that the product knows; nobody has instructed the bank yet. */
  knowRefund: (
    change?: Partial<RefundInstruction>,
    connector?: string,
  ) => Promise<{ input: RefundInstruction; id: string }>;
  decide: (url: string, form: Record<string, string>) => Promise<Response>;
  approve: (url: string) => Promise<Response>;
  rows: (resourceId: string) => Promise<OutboxRow[]>;
  sessionOf: (paymentId: string) => Promise<BankSession | null>;
  callbacks: (resourceId: string) => Promise<CallbackDocument[]>;
  /** Names of the signals that the workflow received, in order. */
  signals: (resourceId: string, resource?: CallbackResource) => Promise<string[]>;
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
    book: own.collection<BankRefund>('refunds'),
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
      const known: KnownRefund = { _id, status: 'processing', ...routed };
      await product.collection<KnownRefund>('refunds').insertOne(known);
      return { input, id: _id };
    },
    decide,
    approve: (url) => decide(url, { decision: 'approve' }),
    rows: (resource_id) => outbox.find({ resource_id }).sort({ 'body.occurred_at': 1 }).toArray(),
    sessionOf: (_id) => own.collection<BankSession>('sessions').findOne({ _id }),
    callbacks: (id) => server.inbox.stores.callbacks.forResource(id),
    signals: async (id, resource = 'payment') => {
      const handle = server.temporal.workflow.getHandle(WORKFLOW_IDS[resource](id));
      const history = await handle.fetchHistory().catch(() => undefined);
      return (history?.events ?? []).flatMap(
        (event) => event.workflowExecutionSignaledEventAttributes?.signalName ?? [],
      );
    },
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
  const end = Date.now() + 10_000;
  for (;;) {
    const answer = await ask();
    if (satisfies(answer)) return answer;
    if (Date.now() > end) throw new Error(`still ${JSON.stringify(answer)}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}
