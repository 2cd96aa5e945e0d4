import { randomBytes, randomUUID } from 'node:crypto';
import type { Client } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import type { MongoClient } from 'mongodb';
import type {
  PayoutInstruction,
  RefundInstruction,
  SessionInstruction,
} from '../../connectors/contract/activities';
import type { SettlementInstruction } from '../../connectors/contract/crypto';
import type { ConnectorParts } from '../../connectors/kit/connector';
import type { InstructionRecord } from '../../connectors/kit/instructions';
import type { BookEntry } from '../../connectors/sandbox/book';
import type { OutboxRow } from '../../connectors/sandbox/outbox';
import type { BankSession } from '../../connectors/sandbox/sessions';
import { connectMongo } from '../../src/base/mongo';
import type { CallbackDeps } from '../../src/callbacks/deliver';
import type { BankResource } from '../../src/domain/banks/callback';
import { omitUndefined } from '../../src/domain/defined';
import type { RecipientDetails } from '../../src/domain/payout/recipient';
import { LIFECYCLES } from '../../src/lifecycles';
import type { MovementDocument as BankMovement } from '../../src/service/banks/sandbox';
import { createStores } from '../../src/store';
import type { CallbackDocument } from '../../src/store/callbacks';
import type { MovementDocument } from '../../src/store/movements';
import { createSandboxReportStore } from '../../src/store/sandbox-reports';
import { connectTemporal } from '../../src/temporal/access';
import { eventually, retryUntilDone } from '../support/eventually';
import { useFixture } from '../support/fixture';
import { createTestLogger, quietTemporal } from '../support/quiet';
import { openSandboxBank } from '../support/sandbox-bank';
import { mongodbUri, temporalAddress } from '../support/servers';

type Recipients = NonNullable<ConnectorParts['recipients']>;

interface BankChange {
  autoplay?: boolean;
  slowSessionMs?: number;
  temporal?: Client;
}

/** A sandbox bank on real servers, with queues of its own and no lifecycle worker behind it. */
export async function startBankServer(mongo: MongoClient, database: string) {
  quietTemporal();
  const address = temporalAddress();
  const connection = await NativeConnection.connect({ address });
  const temporal = connectTemporal({ address, namespace: 'default' });
  const suffix = randomBytes(6).toString('hex');
  const stores = createStores(mongo.db(database));
  /** Dependencies with which the bank delivers its callbacks. */
  const lifecycleQueue = `lifecycle-${suffix}`;
  const inbox: CallbackDeps = { stores, temporal, lifecycleQueue, now: () => new Date() };
  const usual: Recipients = {
    decryptRecipient: async () => RECIPIENT,
    readReference: async () => null,
    decryptEvidence: () => Promise.reject(new Error('No dispute is answered here.')),
  };
  const reads = { ...usual };
  const recipients: Recipients = {
    decryptRecipient: (id) => reads.decryptRecipient(id),
    readReference: (id) => reads.readReference(id),
    decryptEvidence: (...evidence) => reads.decryptEvidence(...evidence),
  };
  /** Deliveries by the ID of their callback, and whether one of them got no answer. */
  const deliveries = new Map<string, { count: number; hasFailed: boolean }>();
  const note = (id: string, isFailed: boolean) => {
    const { count = 0, hasFailed = false } = deliveries.get(id) ?? {};
    deliveries.set(id, { count: count + 1, hasFailed: hasFailed || isFailed });
  };
  const open = ({ autoplay = true, slowSessionMs = 300, ...change }: BankChange = {}) =>
    openSandboxBank(
      {
        ...{ mongo, stores, connection, temporal, lifecycleQueue, log: createTestLogger('bank') },
        ...{ connector: 'sandbox', taskQueuePrefix: suffix, ...change },
      },
      {
        ...{ database, keysDir: '', autoplay },
        changeDelivery: (deliver) => async (report) => {
          const { callback_id } = report.callback;
          const delivering = deliver(report);
          await delivering.then(
            () => note(callback_id, false),
            () => note(callback_id, true),
          );
          return await delivering;
        },
      },
      { recipients, slowSessionMs },
    );
  let bank = await retryUntilDone(() => open());
  return {
    ...{ temporal, inbox, deliveries },
    get bank() {
      return bank;
    },
    /** Replaces what the bank reads of the product, by default by the usual. */
    setReads: (change: Partial<Recipients> = {}): void => {
      Object.assign(reads, usual, change);
    },
    /** Opens the bank again, on the same databases and queues, as after a restart. */
    restart: async (change?: BankChange) => {
      await bank.stop();
      bank = await retryUntilDone(() => open(change));
    },
    stop: async () => {
      await bank.stop();
      await retryUntilDone(() => mongo.db(`${database}_sandbox_bank`).dropDatabase());
      await Promise.all([connection.close(), temporal.connection.close()]);
    },
  };
}

export function instruction(change: Partial<SessionInstruction> = {}): SessionInstruction {
  return {
    ...{ payment_id: randomUUID(), amount: 4_950, currency: 'EUR', method: 'ideal' },
    ...{ country: 'NL', livemode: false, return_url: 'http://localhost:9/pay/return/x' },
    expires_at: new Date(Date.now() + 1_800_000).toISOString(),
    ...change,
  };
}

/** Details of every recipient that is decrypted. */
export const RECIPIENT: RecipientDetails = {
  ...{ type: 'bank_account', first_name: 'Philippa', last_name: 'Featherstonehaugh' },
  ...{ card_number: null, expiry_month: null, expiry_year: null, date_of_birth: '1961-07-29' },
  ...{ iban: 'NL91ABNA0417164300', bic: 'ABNANL2A', sort_code: null, account_number: null },
  ...{ address_line1: 'Keizersgracht 9000', city: 'Amsterdam', postal_code: '1015 CJ' },
  ...{ country: 'NL', email: 'philippa@example.com', reference: 'their own words' },
  parent_payment_reference: null,
};

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
      const facts = { status: 'settled', amount, currency, method, livemode };
      await know('payment', id, { ...facts, ...ROUTED });
      const answer = await server.bank.activities.openSession(input);
      if (answer.outcome !== 'opened') throw new Error(answer.message);
      return { input, id, url: answer.session_url ?? '' };
    },
    knowRefund: async (change: Partial<RefundInstruction> = {}, by = {}) => {
      const input: RefundInstruction = {
        ...{ refund_id: randomUUID(), version: 1, payment_id: randomUUID(), method: 'ideal' },
        ...{ payment_bank_reference: 'SBX0123456789AB', amount: 1_250, currency: 'EUR' },
        ...{ livemode: false, ...change },
      };
      const { refund_id: id, ...facts } = input;
      await know('refund', id, { status: 'processing', ...facts, ...ROUTED, ...by });
      return { input, id };
    },
    knowPayout: async (change: Partial<PayoutInstruction> = {}, by = {}) => {
      const input: PayoutInstruction = {
        ...{ payout_id: randomUUID(), version: 1, amount: 3_400, currency: 'EUR' },
        ...{ method: 'sepa_instant', livemode: false, ...change },
      };
      const { payout_id: id, ...facts } = input;
      await know('payout', id, { status: 'sent', ...facts, ...ROUTED, ...by });
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
    /** Changes the product's document, or deletes it, as a restore of an older database does. */
    productSays: async (resource: Outgoing, _id: string, status: string | null): Promise<void> => {
      if (status === null) await stored(resource).deleteOne({ _id });
      else await stored(resource).updateOne({ _id }, { $set: { status } });
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

/** Refunds and payouts that the product instructs the bank to send, for rules that both share. */
export function describeOutgoing(world: BankWorld) {
  const activities = () => world.server.bank.activities;
  /**
   * @param names status in the bank's book once it has accepted one, the callback that follows, and
   * the amount about which it reports nothing by itself
   */
  const build = <T extends object>(
    resource: Outgoing,
    names: { taken: 'accepted' | 'sent'; done: 'settled' | 'completed'; silent: number },
    know: (change: T) => Promise<{ id: string; send: () => Promise<object> }>,
    lookUp: (id: string) => Promise<object>,
  ) => {
    const { taken, done, silent } = names;
    const book = () => world.own.collection<BookEntry>(`${resource}s`);
    const readEntry = (_id: string) => book().findOne({ _id });
    const knowOne = (change: { amount?: number | undefined; livemode?: boolean } = {}) =>
      know(omitUndefined(change) as T);
    return {
      ...{ resource, taken, done, know: knowOne, lookUp, readEntry },
      takenAnswer: { outcome: taken, bank_reference: expect.stringMatching(/^SBX[0-9A-F]{12}$/) },
      readStatus: async (id: string) => (await readEntry(id))?.status,
      setStatus: (_id: string, status: BookEntry['status']) =>
        book().updateOne({ _id }, { $set: { status } }),
      /** Sends a resource about which the bank reports nothing by itself. */
      takeSilent: async () => {
        const { id, send } = await knowOne({ amount: silent });
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
      productSays: (id: string, status: string | null) => world.productSays(resource, id, status),
    };
  };
  return {
    refund: build(
      'refund',
      { taken: 'accepted', done: 'settled', silent: 66_613 },
      async (change: Partial<RefundInstruction>) => {
        const { id, input } = await world.knowRefund(change);
        return { id, send: () => activities().sendRefund(input) };
      },
      (refund_id) => activities().lookUpRefund({ refund_id }),
    ),
    payout: build(
      'payout',
      { taken: 'sent', done: 'completed', silent: 66_623 },
      async (change: Partial<PayoutInstruction>) => {
        const { id, input } = await world.knowPayout(change);
        return { id, send: () => activities().sendPayout(input) };
      },
      (payout_id) => activities().lookUpPayout({ payout_id }),
    ),
  };
}
