import { randomBytes } from 'node:crypto';
import type { Collection } from 'mongodb';
import type { SessionInstruction } from '../../connectors/contract/activities';
import type { OutboxRow } from '../../connectors/sandbox-bank/outbox';
import type { BankSession } from '../../connectors/sandbox-bank/sessions';
import { paymentWorkflowId } from '../../src/domain/payment';
import { connectMongo } from '../../src/mongo';
import { type CallbackDocument, createCallbackStore } from '../../src/store/callbacks';
import type { PaymentDocument } from '../../src/store/payments';
import { mongodbUri } from '../support/servers';
import { type BankServer, instruction, startBankServer } from './bank-server';

const KNOWN = { connector: 'sandbox', account_id: 'acct_of_the_test', status: 'settled' } as const;

/** What a callback needs to know of its payment. */
type Known = Pick<
  PaymentDocument,
  '_id' | 'amount' | 'currency' | 'method' | 'livemode' | keyof typeof KNOWN
>;

export interface BankWorld {
  server: BankServer;
  outbox: Collection<OutboxRow>;
  /** Opens a session for a payment that the product knows. */
  openFor: (
    change?: Partial<SessionInstruction>,
  ) => Promise<{ input: SessionInstruction; id: string; url: string }>;
  decide: (url: string, form: Record<string, string>) => Promise<Response>;
  approve: (url: string) => Promise<Response>;
  rows: (paymentId: string) => Promise<OutboxRow[]>;
  sessionOf: (paymentId: string) => Promise<BankSession | null>;
  callbacks: (paymentId: string) => Promise<CallbackDocument[]>;
  /** Names of the signals that the payment's workflow received, in order. */
  signals: (paymentId: string) => Promise<string[]>;
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
    outbox,
    openFor: async (change = {}) => {
      const input = instruction(change);
      const { payment_id: _id, amount, currency, method, livemode } = input;
      const money = { amount, currency, method, livemode };
      const known: Known = { _id, ...money, ...KNOWN };
      await product.collection<Known>('payments').insertOne(known);
      const answer = await server.bank.activities.openSession(input);
      if (answer.outcome !== 'opened') throw new Error(answer.message);
      return { input, id: input.payment_id, url: answer.session_url };
    },
    decide,
    approve: (url) => decide(url, { decision: 'approve' }),
    rows: (payment_id) => outbox.find({ payment_id }).sort({ 'body.occurred_at': 1 }).toArray(),
    sessionOf: (_id) => own.collection<BankSession>('sessions').findOne({ _id }),
    callbacks: (id) => createCallbackStore(product).forResource(id),
    signals: async (id) => {
      const handle = server.temporal.workflow.getHandle(paymentWorkflowId(id));
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
