import { randomBytes, randomUUID } from 'node:crypto';
import type {
  PayoutInstruction,
  RefundInstruction,
  SessionInstruction,
} from '../../connectors/contract/activities';
import type { SettlementInstruction } from '../../connectors/contract/crypto';
import type { BookEntry } from '../../connectors/sandbox/book';
import type { OutboxRow } from '../../connectors/sandbox/outbox';
import type { BankSession } from '../../connectors/sandbox/sessions';
import { connectMongo } from '../../src/base/mongo';
import type { BankResource } from '../../src/domain/callback/callback';
import { paymentWorkflowId } from '../../src/domain/payment/payment';
import { payoutWorkflowId } from '../../src/domain/payout/payout';
import { refundWorkflowId } from '../../src/domain/refund/refund';
import type { MovementDocument } from '../../src/service/sandbox-bank/movements';
import type { CallbackDocument } from '../../src/store/callbacks';
import type { PaymentDocument } from '../../src/store/payments';
import type { PayoutDocument } from '../../src/store/payouts';
import type { RefundDocument } from '../../src/store/refunds';
import { createSandboxReportStore } from '../../src/store/sandbox-reports';
import { useFixture } from '../support/fixture';
import { eventually } from '../support/http';
import { retryUntilDone } from '../support/insist';
import { mongodbUri } from '../support/servers';
import { instruction, payoutInstruction, refundInstruction, startBankServer } from './bank-server';

const ROUTED = { connector: 'sandbox', account_id: 'acct_of_the_test' } as const;

type Routing = 'amount' | 'currency' | 'method' | 'livemode' | keyof typeof ROUTED;

/** Fields of a payment that a callback about it needs. */
type KnownPayment = Pick<PaymentDocument, '_id' | 'status' | Routing>;
type KnownRefund = Pick<
  RefundDocument,
  '_id' | 'status' | 'version' | 'payment_id' | 'payment_bank_reference' | Routing
>;
type KnownPayout = Pick<PayoutDocument, '_id' | 'status' | 'version' | Routing>;

const WORKFLOW_IDS = {
  payment: paymentWorkflowId,
  refund: refundWorkflowId,
  payout: payoutWorkflowId,
};

type Planted = Pick<OutboxRow, 'resource' | 'resource_id' | 'name' | 'becomes'> &
  Partial<OutboxRow>;

export type BankWorld = Awaited<ReturnType<typeof startBankWorld>>;

/** Starts a sandbox bank, and gives tests what they read and change around it. */
async function startBankWorld() {
  const database = `test_bank_${randomBytes(6).toString('hex')}`;
  const mongo = await connectMongo(mongodbUri(), 'test-bank');
  const product = mongo.db(database);
  const own = mongo.db(`${database}_sandbox_bank`);
  const server = await startBankServer(mongo, database);
  const outbox = own.collection<OutboxRow>('outbox');

  const rows = (resource_id: string) =>
    outbox.find({ resource_id }).sort({ 'body.occurred_at': 1 }).toArray();
  /** Waits until the resource's rows are as a test needs them. */
  const untilRows = (id: string, satisfies: (rows: OutboxRow[]) => boolean) =>
    eventually(`rows of ${id}`, async () => {
      const all = await rows(id);
      return satisfies(all) && all;
    });
  const readSession = (_id: string) => own.collection<BankSession>('sessions').findOne({ _id });
  /**
   * Names of the signals that the workflow received, in order. One whose delivery got no answer in
   * time counts once: its row was sent again.
   */
  const signals = async (id: string, resource: BankResource = 'payment') => {
    const handle = server.temporal.workflow.getHandle(WORKFLOW_IDS[resource](id));
    const history = await handle.fetchHistory().catch(() => undefined);
    const unanswered = (await rows(id)).filter(({ last_error }) => last_error !== null);
    const seen = new Set<string>();
    return (history?.events ?? []).flatMap(
      ({ workflowExecutionSignaledEventAttributes: signal }) => {
        const text = Buffer.from(signal?.input?.payloads?.[0]?.data ?? []).toString();
        const mayRepeat = unanswered.some(({ body }) => text.includes(body.callback_id));
        const isRepeat = mayRepeat && seen.has(text);
        seen.add(text);
        return isRepeat ? [] : (signal?.signalName ?? []);
      },
    );
  };
  /** Sends the customer's form until the bank can answer, which a busy machine may keep from it. */
  const decide = (url: string, form: Record<string, string>) =>
    eventually('the answer to a decision', async () => {
      // By path: after a restart the bank listens elsewhere.
      const response = await fetch(`${server.bank.url}${new URL(url).pathname}/decision`, {
        method: 'POST',
        redirect: 'manual',
        body: new URLSearchParams({ bank: 'Amber Bank', ...form }),
      });
      return response.status !== 503 && response;
    });
  const approve = (url: string) => decide(url, { decision: 'approve' });
  /** Opens a session for a payment that the product knows. */
  const openFor = async (change: Partial<SessionInstruction> = {}) => {
    const input = instruction(change);
    const { payment_id: _id, amount, currency, method, livemode } = input;
    const money = { amount, currency, method, livemode };
    const known: KnownPayment = { _id, status: 'settled', ...money, ...ROUTED };
    await product.collection<KnownPayment>('payments').insertOne(known);
    const answer = await server.bank.activities.openSession(input);
    if (answer.outcome !== 'opened') throw new Error(answer.message);
    return { input, id: input.payment_id, url: answer.session_url ?? '' };
  };
  return {
    server,
    /** The bank's own database. */
    own,
    outbox,
    /** Reports that the product simulates, which the bank reads. */
    reports: createSandboxReportStore(product),
    /** The bank's own books. */
    refunds: own.collection<BookEntry>('refunds'),
    payouts: own.collection<BookEntry>('payouts'),
    openFor,
    /** A refund that the product knows; nobody has instructed the bank yet. */
    knowRefund: async (
      change: Partial<RefundInstruction> = {},
      connector: string = ROUTED.connector,
    ) => {
      const input = refundInstruction(change);
      const { refund_id: _id, ...facts } = input;
      const known: KnownRefund = { _id, status: 'processing', ...facts, ...ROUTED, connector };
      await product.collection<KnownRefund>('refunds').insertOne(known);
      return { input, id: _id };
    },
    /** A payout that the product knows; nobody has instructed the bank yet. */
    knowPayout: async (
      change: Partial<PayoutInstruction> = {},
      connector: string = ROUTED.connector,
    ) => {
      const input = payoutInstruction(change);
      const { payout_id: _id, amount, currency, method, livemode } = input;
      const routed = { amount, currency, method, livemode, ...ROUTED, connector };
      const known: KnownPayout = { _id, status: 'sent', version: 1, ...routed };
      await product.collection<KnownPayout>('payouts').insertOne(known);
      return { input, id: _id };
    },
    /** A settlement that the product knows; nobody has instructed the chain yet. */
    knowSettlement: async () => {
      const id = randomUUID();
      const facts = {
        ...{ version: 1, asset: 'ETH', network: 'ethereum', amount: '1000', livemode: false },
        wallet_address: '0x52908400098527886E0F7030069857D2E4169EE7',
      };
      const known = { _id: id, status: 'pending', ...facts, ...ROUTED };
      await product.collection<typeof known>('crypto_settlements').insertOne(known);
      return { input: { crypto_settlement_id: id, ...facts } satisfies SettlementInstruction, id };
    },
    /** Creates an account with a clock this much ahead, and gives it the payments. */
    openAhead: async (ids: string[], offset_ms: number): Promise<void> => {
      const account_id = `acct_${randomUUID()}`;
      const known = product.collection<{ _id: string; clock: { offset_ms: number } }>('accounts');
      await known.insertOne({ _id: account_id, clock: { offset_ms } });
      const payments = product.collection<{ _id: string; account_id: string }>('payments');
      await payments.updateMany({ _id: { $in: ids } }, { $set: { account_id } });
    },
    /** Stores late funds in suspense in the product, each with the id of its bank reference. */
    holdLate: async (_id: string, ...ids: string[]): Promise<void> => {
      const money = { amount: 4_950, currency: 'EUR', reason: 'late', state: 'suspense' };
      const receipts = ids.map((id) => ({ id, ...money }));
      const known = product.collection<{ _id: string }>('payments');
      await known.updateOne({ _id }, { $set: { receipts } });
    },
    /** Sets the state that the product's document says from now on. */
    productSays: async (
      resource: 'refund' | 'payout',
      _id: string,
      status: string,
    ): Promise<void> => {
      const known = product.collection<{ _id: string }>(`${resource}s`);
      await known.updateOne({ _id }, { $set: { status } });
    },
    /** Deletes the product's document, as a restore of an older database does. */
    productLoses: async (resource: 'refund' | 'payout', _id: string): Promise<void> => {
      await product.collection<{ _id: string }>(`${resource}s`).deleteOne({ _id });
    },
    decide,
    approve,
    rows,
    /** A row of the outbox, due now. */
    plant: async (row: Planted): Promise<void> => {
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
    untilRows,
    /** Reads the resource's first row once the bank has sent, dropped or parked it. */
    readDoneRow: async (id: string): Promise<OutboxRow | undefined> =>
      (await untilRows(id, ([row]) => row?.done_at != null))[0],
    /** Waits until all of the resource's rows were sent; returns the signals. */
    readSentSignals: async (id: string, resource: BankResource) => {
      await untilRows(id, (all) => all.length > 0 && all.every(({ state }) => state === 'sent'));
      return await signals(id, resource);
    },
    untilSettled: (id: string) =>
      eventually('a settled session', async () => (await readSession(id))?.status === 'settled'),
    /** Lists the money that the bank moved for a resource, in order. */
    listMovements: (resource_id: string) =>
      own
        .collection<MovementDocument>('movements')
        .find({ resource_id })
        .sort({ _id: 1 })
        .toArray(),
    readSession,
    insertCallbacks: (rows: CallbackDocument[]) =>
      product.collection<CallbackDocument>('bank_callbacks').insertMany(rows),
    callbacks: (id: string) => server.inbox.stores.callbacks.forResource(id),
    signals,
    end: async () => {
      await server.stop();
      await retryUntilDone(() => product.dropDatabase());
      await mongo.close();
    },
  };
}

/** A sandbox bank for one file's tests. */
export function useBankWorld(): BankWorld {
  return useFixture(startBankWorld, (world) => world.end());
}
