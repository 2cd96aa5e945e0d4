import { randomBytes, randomUUID } from 'node:crypto';
import type { SettlementInstruction } from '../../connectors/contract/crypto';
import type { InstructionRecord } from '../../connectors/kit/instructions';
import type { BookEntry, EntryStatus } from '../../connectors/sandbox/book';
import type { OutboxRow } from '../../connectors/sandbox/outbox';
import type { BankSession } from '../../connectors/sandbox/sessions';
import { connectMongo } from '../../src/base/mongo';
import type { BankResource } from '../../src/domain/banks/callback';
import { omitUndefined } from '../../src/domain/defined';
import { LIFECYCLES } from '../../src/lifecycles';
import type { MovementDocument as BankMovement } from '../../src/service/banks/sandbox-bank/movements';
import type { CallbackDocument } from '../../src/store/callbacks';
import type { MovementDocument } from '../../src/store/movements';
import { createSandboxReportStore } from '../../src/store/sandbox-reports';
import { useFixture } from '../support/fixture';
import { eventually } from '../support/http';
import { retryUntilDone } from '../support/insist';
import { mongodbUri } from '../support/servers';
import { instruction, payoutInstruction, refundInstruction, startBankServer } from './bank-server';

const ROUTED = { connector: 'sandbox', account_id: 'acct_of_the_test' };

/** Resources that the product instructs a bank to send. */
type Outgoing = 'refund' | 'payout';

type BankWorld = Awaited<ReturnType<typeof startBankWorld>>;

/** Starts a sandbox bank, and gives tests what they read and change around it. */
async function startBankWorld() {
  const database = `test_bank_${randomBytes(6).toString('hex')}`;
  const mongo = await connectMongo(mongodbUri(), 'test-bank');
  const product = mongo.db(database);
  const own = mongo.db(`${database}_sandbox_bank`);
  const server = await startBankServer(mongo, database);
  const outbox = own.collection<OutboxRow>('outbox');
  const stored = (resource: string) => product.collection<{ _id: string }>(`${resource}s`);

  const rows = (resource_id: string) =>
    outbox.find({ resource_id }).sort({ 'body.occurred_at': 1 }).toArray();
  /** Lets the seconds pass for which rows of a resource wait, in their order. */
  const passSeconds = (resource_id: string) =>
    outbox.updateMany({ resource_id, state: 'pending' }, [
      { $set: { due_at: { $subtract: ['$due_at', 60_000] } } },
    ]);
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
    const handle = server.temporal.workflow.getHandle(LIFECYCLES[resource].workflowId(id));
    const history = await handle.fetchHistory().catch(() => undefined);
    const unanswered = (await rows(id)).filter(
      ({ body }) => server.deliveries.get(body.callback_id)?.hasFailed,
    );
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
  /** Stores a resource as the product does that has instructed nobody yet. */
  const know = async (resource: string, _id: string, facts: object) => {
    await stored(resource).insertOne({ ...facts, _id });
  };
  return {
    ...{ server, own, outbox, rows, untilRows, readSession, signals, decide },
    approve: (url: string) => decide(url, { decision: 'approve' }),
    /** Reports that the product simulates, which the bank reads. */
    reports: createSandboxReportStore(product),
    /** Opens a session for a payment that the product knows. */
    openFor: async (change: Parameters<typeof instruction>[0] = {}) => {
      const input = instruction(change);
      const { payment_id: id, amount, currency, method, livemode } = input;
      await know('payment', id, {
        status: 'settled',
        amount,
        currency,
        method,
        livemode,
        ...ROUTED,
      });
      const answer = await server.bank.activities.openSession(input);
      if (answer.outcome !== 'opened') throw new Error(answer.message);
      return { input, id, url: answer.session_url ?? '' };
    },
    knowRefund: async (
      change: Parameters<typeof refundInstruction>[0] = {},
      connector = ROUTED.connector,
    ) => {
      const input = refundInstruction(change);
      const { refund_id: id, ...facts } = input;
      await know('refund', id, { status: 'processing', ...facts, ...ROUTED, connector });
      return { input, id };
    },
    knowPayout: async (
      change: Parameters<typeof payoutInstruction>[0] = {},
      connector = ROUTED.connector,
    ) => {
      const input = payoutInstruction(change);
      const { payout_id: id, ...facts } = input;
      await know('payout', id, { status: 'sent', ...facts, ...ROUTED, connector });
      return { input, id };
    },
    knowSettlement: async () => {
      const id = randomUUID();
      const facts = {
        ...{ version: 1, asset: 'ETH', network: 'ethereum', amount: '1000', livemode: false },
        wallet_address: '0x52908400098527886E0F7030069857D2E4169EE7',
      };
      await know('crypto_settlement', id, { status: 'pending', ...facts, ...ROUTED });
      return { input: { crypto_settlement_id: id, ...facts } satisfies SettlementInstruction, id };
    },
    /** Creates an account with a clock this much ahead, and gives it the payments. */
    openAhead: async (ids: string[], offset_ms: number): Promise<void> => {
      const account_id = `acct_${randomUUID()}`;
      await know('account', account_id, { clock: { offset_ms } });
      await stored('payment').updateMany({ _id: { $in: ids } }, { $set: { account_id } });
    },
    /** Stores late funds in suspense in the product, each with the id of its bank reference. */
    holdLate: async (_id: string, ...ids: string[]): Promise<void> => {
      const late: MovementDocument[] = ids.map((id, order) => ({
        ...{ _id: id, ...ROUTED, livemode: false, resource: 'payment', resource_id: _id, order },
        ...{ names: [id], bank_reference: id, direction: 'in', amount: 4_950, currency: 'EUR' },
        ...{ value_date: null, reported_at: new Date().toISOString(), sources: [] },
        ...{ reason: 'late', applied: 0, resolutions: [], state: 'suspense', entry: id },
      }));
      await product.collection<MovementDocument>('bank_movements').insertMany(late);
    },
    /** Ends an attempt that has failed, and could reach the bank for 25 seconds. */
    endAttempt: async (resource: Outgoing, id: string): Promise<void> => {
      const records = own.collection<InstructionRecord>('instructions');
      const change = { $set: { deadline: new Date(0) } };
      await records.updateOne({ _id: `${resource}:${id}`, answer: null }, change);
    },
    /** Sets the state that the product's document says from now on. */
    productSays: async (resource: Outgoing, _id: string, status: string): Promise<void> => {
      await stored(resource).updateOne({ _id }, { $set: { status } });
    },
    /** Deletes the product's document, as a restore of an older database does. */
    productLoses: async (resource: Outgoing, _id: string): Promise<void> => {
      await stored(resource).deleteOne({ _id });
    },
    /** Reads the resource's first row once the bank has sent, dropped or parked it. */
    readDoneRow: async (id: string): Promise<OutboxRow | undefined> => {
      await passSeconds(id);
      return (await untilRows(id, ([row]) => row?.done_at != null))[0];
    },
    /** Waits until all of the resource's rows were sent; returns the signals. */
    readSentSignals: async (id: string, resource: BankResource = 'payment') => {
      await passSeconds(id);
      await untilRows(id, (all) => all.length > 0 && all.every(({ state }) => state === 'sent'));
      return await signals(id, resource);
    },
    untilSettled: async (id: string) => {
      await passSeconds(id);
      await eventually('a settlement', async () => (await readSession(id))?.status === 'settled');
    },
    /** Money that the bank moved for a resource, as text, each under a reference of its own. */
    listMovements: async (resource_id: string) => {
      const movements = own.collection<BankMovement>('movements');
      const all = await movements.find({ resource_id }).sort({ _id: 1 }).toArray();
      expect(new Set(all.map(({ bank_reference }) => bank_reference)).size).toBe(all.length);
      return all.map(({ name, amount, currency }) => `${name} ${amount} ${currency}`);
    },
    insertCallbacks: (all: CallbackDocument[]) =>
      product.collection<CallbackDocument>('bank_callbacks').insertMany(all),
    callbacks: (id: string) => server.inbox.stores.callbacks.forResource(id),
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

type Change = { amount?: number | undefined; livemode?: boolean };

/** Describes refunds or payouts at the sandbox bank, for tests of rules that both share. */
interface Instructed {
  /** Status in the bank's book once it has accepted one, and the callback that follows. */
  taken: 'accepted' | 'sent';
  done: 'settled' | 'completed';
  /** Amount about which the bank reports nothing by itself; minor units. */
  silent: number;
  know: (change?: Change) => Promise<{ id: string; send: () => Promise<object> }>;
  lookUp: (id: string) => Promise<object>;
}

/** Gives refunds and payouts that the product instructs a bank to send. */
export function describeOutgoing(world: BankWorld) {
  const activities = () => world.server.bank.activities;
  const refund: Instructed = {
    ...{ taken: 'accepted', done: 'settled', silent: 66_613 },
    know: async (change = {}) => {
      const { id, input } = await world.knowRefund(omitUndefined(change));
      return { id, send: () => activities().sendRefund(input) };
    },
    lookUp: (refund_id) => activities().lookUpRefund({ refund_id }),
  };
  const payout: Instructed = {
    ...{ taken: 'sent', done: 'completed', silent: 66_623 },
    know: async (change = {}) => {
      const { id, input } = await world.knowPayout(omitUndefined(change));
      return { id, send: () => activities().sendPayout(input) };
    },
    lookUp: (payout_id) => activities().lookUpPayout({ payout_id }),
  };
  return {
    refund: addBook(world, 'refund', refund),
    payout: addBook(world, 'payout', payout),
  };
}

/** Adds the bank's own records of a refund or a payout. */
function addBook(world: BankWorld, resource: Outgoing, instructed: Instructed) {
  const { taken, done, silent, know } = instructed;
  const book = () => world.own.collection<BookEntry>(`${resource}s`);
  const readEntry = (_id: string) => book().findOne({ _id });
  return {
    ...{ ...instructed, resource, readEntry },
    takenAnswer: { outcome: taken, bank_reference: expect.stringMatching(/^SBX[0-9A-F]{12}$/) },
    readStatus: async (id: string) => (await readEntry(id))?.status,
    setStatus: (_id: string, status: EntryStatus) =>
      book().updateOne({ _id }, { $set: { status } }),
    /** Sends a resource about which the bank reports nothing by itself. */
    takeSilent: async () => {
      const { id, send } = await know({ amount: silent });
      await send();
      return id;
    },
    /** Puts a row about it into the outbox, due now. */
    plant: async (resource_id: string, change: Partial<OutboxRow> = {}): Promise<void> => {
      const callback_id = `cb_${randomUUID()}`;
      await world.outbox.insertOne({
        ...{ _id: callback_id, resource, resource_id, name: done, becomes: done },
        body: { callback_id, occurred_at: new Date().toISOString() },
        ...{ state: 'pending', due_at: new Date(), done_at: null },
        ...change,
      });
    },
    readSentSignals: (id: string) => world.readSentSignals(id, resource),
    endAttempt: (id: string) => world.endAttempt(resource, id),
    signals: (id: string) => world.signals(id, resource),
    productSays: (id: string, status: string) => world.productSays(resource, id, status),
    productLoses: (id: string) => world.productLoses(resource, id),
  };
}
