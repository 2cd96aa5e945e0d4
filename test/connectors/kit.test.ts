import { randomUUID } from 'node:crypto';
import { CallbackConflict } from '../../connectors/contract/callbacks';
import type { SettlementInstruction } from '../../connectors/contract/crypto';
import type { Report } from '../../connectors/kit';
import { createKitActivities } from '../../connectors/kit/activities';
import {
  defineConnector,
  type Optional,
  type SendsRefunds,
  type TakesPayments,
} from '../../connectors/kit/definition';
import { createInstructionStore } from '../../connectors/kit/instructions';
import { createPoller, createReportDelivery } from '../../connectors/kit/reports';
import {
  type Chain,
  type ChainReport,
  createChainStores,
  startChain,
} from '../../connectors/sandbox/chain/chain';
import type { ChainTransaction } from '../../connectors/sandbox/chain/transactions';
import { ServiceError } from '../../src/domain/errors';
import { useDatabase } from '../support/database';
import { eventually } from '../support/eventually';
import { gate } from '../support/gate';
import { createTestLogger } from '../support/quiet';

type Bank = TakesPayments<Record<never, never>>;
type Refunds = Optional<SendsRefunds<Record<never, never>>> & { repeatsAnswers?: boolean };

const database = useDatabase({ indexed: false });

const never = () => Promise.reject(new Error('This must not be called.'));

/** Builds the activities of a connector for payments from functions of its bank. */
function connect(bank: Partial<Bank>, refunds: Refunds = {}) {
  const now = () => new Date();
  const definition = defineConnector({
    ...{ name: 'acme', serves: ['visa'], settings: {} },
    poll: { seconds: 1, read: async () => ({ reports: [], cursor: null }) },
    ...{ openSession: never, closeSession: never, voidPayment: never, reversePayment: never },
    ...bank,
    ...refunds,
  });
  const { openSession, closeSession, voidPayment, reversePayment, ...others } = createKitActivities(
    {
      ...{ definition, now, livemode: false },
      buildTools: () => ({ settings: {}, call: never, log: console, now }),
      instructions: createInstructionStore(database.db, now),
      findOutdated: async () => undefined,
      ...{ decryptRecipient: never, readReference: never, decryptEvidence: never },
    },
  );
  if (!openSession || !closeSession || !voidPayment || !reversePayment) throw new Error('missing');
  return { openSession, closeSession, voidPayment, reversePayment, ...others };
}

const instruct = (livemode = false) => ({
  ...{ payment_id: randomUUID(), amount: 4_950, currency: 'EUR', method: 'visa', country: null },
  ...{ livemode, return_url: 'https://shop.example', expires_at: '2039-01-01T00:00:00Z' },
});
const SESSION = { bank_reference: 'S-1', session_url: 'https://bank.example/1' };
const OPENED = { outcome: 'opened', ...SESSION } as const;
const CLOSED = { outcome: 'declined', code: 'session_closed', message: expect.any(String) };

describe('a session', () => {
  test.each([
    ['closed', CLOSED],
    ['already_authorized', OPENED],
  ] as const)(
    'that is closed while the bank opens it is as the bank decides: %s',
    async (...row) => {
      const [outcome, expected] = row;
      const input = instruct();
      const { payment_id } = input;
      const closeSession = jest.fn(async () => ({ outcome }));
      const openSession = async () => {
        await bank.closeSession({ payment_id });
        return OPENED;
      };
      const bank = connect({ openSession, closeSession });
      expect(await bank.openSession(input)).toEqual(expected);
      const session = { payment_id, bank_reference: 'S-1' };
      expect(closeSession).toHaveBeenLastCalledWith(session, expect.anything());
    },
  );

  test('with bank details in place of a page has the amount of the payment', async () => {
    const input = instruct();
    const transferred = (amount: number) => {
      const account = { iban: 'DE89370400440532013000', account_holder: 'ACME', bic: null };
      const instructions = { ...account, reference: 'RF18539007547034', amount };
      return { outcome: 'opened', bank_reference: 'R-1', instructions } as const;
    };
    const wrong = connect({ openSession: async () => transferred(1) });
    await expect(wrong.openSession(input)).rejects.toThrow('another amount');
    const right = connect({ openSession: async () => transferred(input.amount) });
    expect(await right.openSession(input)).toEqual(transferred(4_950));
  });

  test('of a live payment does not open at a test system', async () => {
    const opening = connect({}).openSession(instruct(true));
    await expect(opening).rejects.toThrow('serves the sandbox only');
  });
});

test('a void names the bank’s reference', async () => {
  const voidPayment = jest.fn(async () => ({ outcome: 'voided' }) as const);
  const bank = connect({ openSession: async () => OPENED, voidPayment });
  const input = instruct();
  await bank.openSession(input);
  const instruction = { payment_id: input.payment_id, instruction_id: `void:${input.payment_id}` };
  expect(await bank.voidPayment(instruction)).toEqual({ outcome: 'voided' });
  const expected = { ...instruction, bank_reference: 'S-1' };
  expect(voidPayment).toHaveBeenCalledWith(expected, expect.anything());
});

test('late funds are not sent back while an attempt may reach the bank', async () => {
  const accepted = { outcome: 'accepted', bank_reference: 'R-1' } as const;
  const reversePayment = jest.fn(async () => accepted);
  const bank = connect({ reversePayment });
  const payment_id = randomUUID();
  const money = { amount: 100, currency: 'EUR' };
  const input = { payment_id, instruction_id: `reversal:${payment_id}`, ...money };
  expect(await bank.reversePayment(input)).toEqual(accepted);
  const another = { ...input, instruction_id: `reversal:${payment_id}:2` };
  reversePayment.mockRejectedValueOnce(new Error('away'));
  await expect(bank.reversePayment(another)).rejects.toThrow('away');
  await expect(bank.reversePayment(another)).rejects.toThrow('may still reach the bank');
  expect(reversePayment).toHaveBeenCalledTimes(2);
});

test('refunds and payouts that the bank does not have are refused with a message', async () => {
  const { sendRefund, lookUpRefund, sendPayout, lookUpPayout } = connect({});
  const refused = (message: string) => ({ outcome: 'refused', code: 'not_supported', message });
  const [refund, payout] = ['The bank has no refunds.', 'The bank has no payouts.'].map(refused);
  const money = { version: 1, amount: 1, currency: 'EUR', method: 'visa', livemode: false };
  const facts = { payment_id: 'p', payment_bank_reference: null, ...money };
  expect(await sendRefund?.({ refund_id: 'r', ...facts })).toEqual(refund);
  expect(await lookUpRefund?.({ refund_id: 'r' })).toEqual(refund);
  expect(await sendPayout?.({ payout_id: 'o', ...money })).toEqual(payout);
  expect(await lookUpPayout?.({ payout_id: 'o' })).toEqual(payout);
});

test.each([
  ['repeats its answers is not looked up before its first attempt', true, [0, 1]],
  ['does not is looked up before each attempt', false, [1, 2]],
] as const)('a refund at a bank that %s', async (_what, repeatsAnswers, lookUps) => {
  const accepted = { outcome: 'accepted', bank_reference: 'R-1' } as const;
  const lookUpRefund = jest.fn(async () => accepted);
  const lost = async () => ({ outcome: 'not_found' }) as never;
  if (!repeatsAnswers) lookUpRefund.mockImplementationOnce(lost);
  const sendRefund = jest.fn(async () => accepted);
  const bank = connect({}, { sendRefund, lookUpRefund, repeatsAnswers });
  const money = { version: 1, amount: 1, currency: 'EUR', method: 'visa', livemode: false };
  const facts = { payment_id: 'p', payment_bank_reference: null, ...money };
  const input = { refund_id: randomUUID(), ...facts };
  for (const count of lookUps) {
    expect(await bank.sendRefund?.(input)).toEqual(accepted);
    expect([sendRefund, lookUpRefund].map(({ mock }) => mock.calls.length)).toEqual([1, count]);
  }
});

test('a bank that hands reports out until then learns which were delivered, and only those', async () => {
  const reports = ['stuck', 'quick', 'stuck'].map((resource_id, at): Report => {
    const callback = { callback_id: `${at}:${resource_id}`, occurred_at: '2026-11-26T10:00:00Z' };
    return { resource: 'payout', resource_id, name: 'sent', callback };
  });
  const acknowledged: string[] = [];
  const read = createPoller({
    ...{ db: database.db, meter: { polled: () => undefined } },
    tools: { settings: {}, call: never, log: console, now: () => new Date() },
    deliver: async ([report]) => {
      if (report?.resource_id === 'stuck') throw new Error('away');
      return [];
    },
    setAside: never,
    poll: {
      ...{ seconds: 1, read: async (cursor) => ({ reports, cursor }) },
      acknowledge: async (delivered) => {
        acknowledged.push(...delivered.map(({ resource_id }) => resource_id));
      },
    },
  });
  await expect(read()).rejects.toThrow('away');
  expect(acknowledged).toEqual(['quick']);
  expect(await database.db.collection('cursors').countDocuments()).toBe(0);
});

test('what a bank lists and nobody can read is set aside, and all else is delivered', async () => {
  const log = { error: jest.fn() };
  const resource_id = randomUUID();
  const callback = { callback_id: resource_id, occurred_at: '2026-11-26T10:00:00Z' };
  const reports: Report[] = [{ resource: 'payout', resource_id, name: 'sent', callback }];
  const heard: Report[] = [];
  const { deliver, setAside, countSetAside, retry } = createReportDelivery({
    ...{ db: database.db, now: () => new Date(), log, meter: { setAside: () => undefined } },
    deliver: async (each) => void heard.push(each),
  });
  const malformed = [{ id: 'evt_1', why: 'The list has created that does not fit.' }];
  const read = createPoller({
    ...{ db: database.db, meter: { polled: () => undefined }, deliver, setAside },
    tools: { settings: {}, call: never, log: console, now: () => new Date() },
    poll: { seconds: 1, read: async () => ({ reports, malformed, cursor: 'next' }) },
  });
  for (const _round of [1, 2]) await read();
  expect(heard).toEqual([...reports, ...reports]);
  const [cursors, rows] = ['cursors', 'reports_set_aside'].map((of) => database.db.collection(of));
  expect(await cursors?.findOne({})).toMatchObject({ value: 'next' });
  expect(await rows?.find().toArray()).toMatchObject([
    { _id: 'evt_1', why: `malformed: ${malformed[0]?.why}`, retry_at: null },
  ]);
  expect(log.error).toHaveBeenCalledTimes(1);
  expect(await retry()).toBe(false);
  expect(await countSetAside()).toBe(1);
  await Promise.all([cursors?.deleteMany({}), rows?.deleteMany({})]);
});

describe('the delivery of reports', () => {
  const clock = { now: new Date() };
  const connectProduct = (deliver: (report: Report) => Promise<unknown>) =>
    createReportDelivery({
      ...{ db: database.db, deliver, now: () => clock.now },
      ...{ meter: { setAside: () => undefined }, log: { error: () => undefined } },
    });
  const buildReport = (resource_id: string, name: 'sent' | 'completed'): Report => {
    const callback_id = `${name}:${resource_id}`;
    const callback = { callback_id, occurred_at: '2026-11-26T10:00:00Z' };
    return { resource: 'payout', resource_id, name, callback };
  };

  test('keeps the order for each payout, and lets no payout wait for another one', async () => {
    const [slow, quick] = [randomUUID(), randomUUID()];
    const done: string[] = [];
    const [held, quickEnd] = [gate(), gate()];
    const { deliver } = connectProduct(async ({ resource_id, name }) => {
      if (resource_id === slow && name === 'sent') await held.opened;
      done.push(`${name}:${resource_id}`);
      if (resource_id === quick && name === 'completed') quickEnd.release();
    });
    const delivered = deliver(
      [slow, quick].flatMap((id) => [buildReport(id, 'sent'), buildReport(id, 'completed')]),
    );
    await quickEnd.opened;
    expect(done).toEqual([`sent:${quick}`, `completed:${quick}`]);
    held.release();
    await delivered;
    expect(done.slice(2)).toEqual([`sent:${slow}`, `completed:${slow}`]);
  });

  test.each(['rate_limited', 'record_behind'])(
    'sets what is refused by %s aside with all behind it, and tries it again',
    async (code) => {
      const [refused, good] = [randomUUID(), randomUUID()];
      const done: string[] = [];
      let isRefused = true;
      const { deliver, retry } = connectProduct(async ({ resource_id, name }) => {
        if (resource_id === refused && isRefused) throw new ServiceError(code, 'No.');
        done.push(`${name}:${resource_id}`);
      });
      const passMinutes = async (minutes: number) => {
        clock.now = new Date(clock.now.getTime() + minutes * 60_000);
        expect(await retry()).toBe(false);
      };
      const first = [buildReport(refused, 'sent'), buildReport(good, 'sent')];
      for (const reports of [first, first]) await deliver(reports);
      await passMinutes(1);
      isRefused = false;
      await deliver([buildReport(refused, 'completed')]);
      await passMinutes(1);
      expect(done).toEqual([`sent:${good}`, `sent:${good}`]);
      await passMinutes(1);
      expect(done.slice(2)).toEqual([`sent:${refused}`, `completed:${refused}`]);
      expect(await database.db.collection('reports_set_aside').countDocuments()).toBe(0);
    },
  );

  test('sets each fact aside of a bank that gives them one ID', async () => {
    const ids = [randomUUID(), randomUUID()];
    const { deliver } = connectProduct(() => Promise.reject(new CallbackConflict('used before')));
    const callback = { callback_id: 'sent-1', occurred_at: '2026-11-26T10:00:00Z' };
    const reports = ids.map((id): Report => ({ ...buildReport(id, 'sent'), callback }));
    for (const each of [reports, reports]) await deliver(each);
    const rows = database.db.collection('reports_set_aside');
    const stored = await rows.find().toArray();
    expect(stored.map(({ report }) => report.resource_id).sort()).toEqual(ids.toSorted());
    await rows.deleteMany({});
  });

  test('says which were not applied, and begins no more reports after one has failed', async () => {
    const reports = Array.from({ length: 30 }, () => buildReport(randomUUID(), 'sent'));
    const { deliver } = connectProduct(async (report) =>
      report === reports[1] ? 'parked' : 'delivered',
    );
    expect(await deliver(reports)).toEqual([reports[1]]);
    const fail = jest.fn(() => Promise.reject(new Error('Temporal is away')));
    await expect(connectProduct(fail).deliver(reports)).rejects.toThrow('away');
    expect(fail.mock.calls.length).toBeLessThanOrEqual(10);
  });
});

describe('the chain of the sandbox', () => {
  let chain: Chain;
  /** `stopped_at` freezes it. */
  const clock: { ahead_ms: number; stopped_at?: number | undefined } = { ahead_ms: 0 };
  /**
   * Treatment of the chain by the product, and the reports that it received, by callback ID.
   * `deliveries` counts repeats too, `lost_answers` those to come that get lost; `check_ms` is the
   * time that its check of a settlement takes.
   */
  const createProduct = () => ({
    ...{ heard: new Map<string, ChainReport>(), deliveries: 0, lost_answers: 0, check_ms: 0 },
    ...{ is_awaited: true, is_current: true },
  });
  let product = createProduct();

  async function open(autoplay = true): Promise<void> {
    const now = () => new Date((clock.stopped_at ?? Date.now()) + clock.ahead_ms);
    const readTime = async () => now();
    const stores = createChainStores(database.db, now, readTime);
    await stores.ensureIndexes();
    chain = startChain({
      ...{ mongo: database.mongo, stores, connector: 'sandbox', autoplay, now, readTime },
      isAwaited: async () => product.is_awaited,
      findOutdated: async () => {
        clock.ahead_ms += product.check_ms;
        return product.is_current ? undefined : { outcome: 'outdated' };
      },
      deliver: async (report) => {
        const isKnown = product.heard.has(report.callback.callback_id);
        product.heard.set(report.callback.callback_id, report);
        product.deliveries += 1;
        if (product.lost_answers > 0) {
          product.lost_answers -= 1;
          throw new Error('the answer got lost');
        }
        return isKnown ? 'duplicate' : 'delivered';
      },
      log: createTestLogger('test-chain'),
    });
  }

  beforeEach(async () => {
    product = createProduct();
    Object.assign(clock, { ahead_ms: 0, stopped_at: undefined });
    await open();
  });
  afterEach(() => chain.stop());

  const restart = async (autoplay?: boolean) => {
    await chain.stop();
    await open(autoplay);
  };
  const activities = () => chain.activitiesAt('http://localhost:9');

  const ETHER = { asset: 'ETH', network: 'ethereum' } as const;

  /** Starts a payment of this many minor units, with an address to pay to. */
  async function pay(amount: number) {
    const crypto_payment_id = randomUUID();
    const facts = { crypto_payment_id, ...ETHER, livemode: false };
    const quote = await activities().quoteRate({ ...facts, amount, currency: 'EUR' });
    if (quote.outcome !== 'quoted') throw new Error(quote.message);
    const { amount_due } = quote;
    const expires_at = new Date(Date.now() + 1_800_000).toISOString();
    const instruction = { ...facts, amount_due, expires_at };
    const answer = await activities().giveAddress(instruction);
    if (answer.outcome !== 'given') throw new Error(answer.message);
    return { id: crypto_payment_id, due: BigInt(amount_due), answer, instruction };
  }

  const listCallbacks = (id: string) =>
    [...product.heard.values()].filter(({ resource_id }) => resource_id === id);
  /** Writes callbacks about a resource as short texts. */
  const summarize = (id: string) =>
    listCallbacks(id).map(({ name, callback }) => `${name} ${callback.confirmations ?? ''}`.trim());
  const readFirst = (id: string) => listCallbacks(id)[0]?.callback;

  /** Lets time pass until the chain has nothing more to report. */
  const play = () =>
    eventually('the end of all reports', async () => {
      clock.ahead_ms += 500;
      chain.routes.sent();
      const transactions = database.db.collection<ChainTransaction>('chain_transactions');
      return (await transactions.countDocuments({ due_at: { $type: 'date' } })) === 0;
    });

  describe('a payment', () => {
    it('is declined in live and in an asset that the chain does not know', async () => {
      const { instruction } = await pay(4_950);
      const live = await activities().giveAddress({ ...instruction, livemode: true });
      expect(live).toMatchObject({ outcome: 'declined', code: 'live_not_supported' });
      const other = await activities().giveAddress({ ...instruction, asset: 'DOGE' });
      expect(other).toMatchObject({ outcome: 'declined', code: 'asset_not_supported' });
      await expect(pay(66_639)).rejects.toThrow('no rate');
    });

    it.each([
      [66_631, ['deposit 0', 'deposit 3'], 2n, 1],
      [66_632, ['deposit 0', 'deposit 3'], 1n, 1],
      [66_634, ['deposit 0', 'deposit 3'], 4n, 1],
      // Of a source that fails the screening.
      [66_635, ['deposit 0', 'deposit 3'], 2n, 1],
      // A reorganization takes it back, into another block.
      [66_636, ['deposit 1', 'deposit_undone', 'deposit 1', 'deposit 3'], 2n, 2],
      [66_637, ['deposit 0', 'deposit 3', 'deposit_undone'], 2n, 1],
      [66_638, ['deposit 0'], 2n, 0],
    ])('of the magic amount %d is reported as %j, with %d halves of it', async (...row) => {
      const [amount, steps, halves, blocks] = row;
      const { id, due, instruction } = await pay(amount);
      await activities().giveAddress(instruction);
      await play();
      expect(summarize(id)).toEqual(steps);
      const callbacks = listCallbacks(id).map(({ callback }) => callback);
      const { amount: units, transaction_id = '' } = readFirst(id) ?? {};
      expect(units).toBe(String((due * halves) / 2n));
      expect(new Set(callbacks.map(({ occurred_at }) => occurred_at)).size).toBe(1);
      expect(new Set(callbacks.map((callback) => callback.transaction_id)).size).toBe(1);
      expect(new Set(callbacks.flatMap(({ block_hash }) => block_hash ?? [])).size).toBe(blocks);
      const question = { crypto_payment_id: id, transaction_id, ...ETHER, livemode: false };
      const { outcome } = await activities().screenSource(question);
      expect(outcome).toBe(amount === 66_635 ? 'failed' : 'passed');
    });

    it('of 66633 comes in two transactions, to the unit', async () => {
      const { id, due } = await pay(66_633);
      await play();
      const amounts = new Map(
        listCallbacks(id).map(({ callback }) => [callback.transaction_id, callback.amount]),
      );
      expect([...amounts.values()].reduce((sum, each) => sum + BigInt(each ?? 0), 0n)).toBe(due);
      expect(amounts.size).toBe(2);
    });
  });

  describe('a report', () => {
    it('is repeated under the same id when its answer gets lost, also by the next process', async () => {
      product.lost_answers = 3;
      const { id } = await pay(66_631);
      // The next process makes the reports of one that was stopped.
      await restart(false);
      await play();
      expect(summarize(id)).toEqual(['deposit 0', 'deposit 3']);
      // Three answers got lost, and two reports were delivered.
      expect(product.deliveries).toBeGreaterThanOrEqual(5);
    });

    it('has one id from two processes that work at once', async () => {
      const first = chain;
      await open();
      const paid = await Promise.all([pay(66_631), pay(66_636)]);
      await play();
      await first.stop();
      expect(paid.map(({ id }) => summarize(id).length)).toEqual([2, 4]);
      expect(product.heard.size).toBe(6);
    });
  });

  describe('a settlement', () => {
    /** Builds a settlement with what the chain does about it. */
    const build = (changes: Partial<SettlementInstruction> = {}) => {
      const id = randomUUID();
      const instruction: SettlementInstruction = {
        ...{ crypto_settlement_id: id, version: 1, ...ETHER, amount: '10000000000000000001' },
        ...{ wallet_address: '0x52908400098527886E0F7030069857D2E4169EE7', livemode: false },
        ...changes,
      };
      const transactions = database.db.collection('chain_transactions');
      return {
        id,
        send: () => activities().sendSettlement(instruction),
        lookUp: () => activities().lookUpSettlement(instruction),
        countTransactions: () => transactions.countDocuments({ resource_id: id }),
      };
    };

    it('is one transaction for twenty instructions at once, and completes', async () => {
      const { id, send, lookUp, countTransactions } = build();
      await Promise.allSettled(Array.from({ length: 20 }, send));
      const answer = await send();
      expect(answer).toMatchObject({ outcome: 'sent' });
      expect(await lookUp()).toEqual(answer);
      expect(await countTransactions()).toBe(1);
      await play();
      expect(summarize(id)).toEqual(['completed']);
      expect(answer).toMatchObject({ transaction_id: readFirst(id)?.transaction_id });
    });

    it.each([
      ['66641', 'refused', []],
      ['66642', 'sent', ['failed']],
      ['66643', 'sent', []],
      ['66646', 'pending', ['sent', 'completed']],
    ])('of %s units is %s, and then reported as %j', async (amount, outcome, steps) => {
      const { id, send } = build({ amount });
      expect((await send()).outcome).toBe(outcome);
      await play();
      expect(summarize(id)).toEqual(steps);
    });

    it.each([
      ['66644', 'answer', 'sent'],
      ['66645', 'instruction', 'not_found'],
    ])('of %s units whose %s gets lost is looked up as %s', async (amount, lost, outcome) => {
      const { send, lookUp, countTransactions } = build({ amount });
      await expect(send()).rejects.toThrow(lost);
      expect((await lookUp()).outcome).toBe(outcome);
      expect((await send()).outcome).toBe('sent');
      expect(await countTransactions()).toBe(1);
    });

    it('is not sent if its document has another state, or by an attempt that took too long', async () => {
      product.is_current = false;
      const { send, lookUp, countTransactions } = build();
      expect(await send()).toEqual({ outcome: 'outdated' });
      Object.assign(product, { is_current: true, check_ms: 25_000 });
      clock.stopped_at = Date.now();
      await expect(send()).rejects.toThrow('took too long');
      expect([await lookUp(), await countTransactions()]).toEqual([{ outcome: 'not_found' }, 0]);
      product.check_ms = 24_999;
      expect(await send()).toMatchObject({ outcome: 'sent' });
    });

    it.each([
      ['after a simulation', true],
      ['with autoplay off', false],
    ])('is not reported by itself %s', async (_when, autoplay) => {
      await restart(autoplay);
      product.is_awaited = !autoplay;
      const { id, send } = build();
      expect(await send()).toMatchObject({ outcome: 'sent' });
      await play();
      expect(listCallbacks(id)).toEqual([]);
    });
  });

  test('a wallet accepts a hundred transactions, each form key once, also at once', async () => {
    const { id } = await pay(66_633);
    const now = () => new Date();
    const { wallets } = createChainStores(database.db, now, async () => now());
    const nonces = Array.from({ length: 105 }, () => randomUUID());
    const reserve = (nonce: string) => wallets.reserve(id, nonce);
    const answers = await Promise.all([...nonces, ...nonces.slice(0, 3)].map(reserve));
    const accepted = nonces.filter((_nonce, at) => answers[at]);
    expect(accepted).toHaveLength(100);
    expect(await Promise.all(accepted.slice(0, 3).map(reserve))).toEqual([true, true, true]);
    expect(await reserve(randomUUID())).toBe(false);
  });
});
