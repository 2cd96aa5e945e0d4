import { randomUUID } from 'node:crypto';
import type {
  CryptoConnectorActivities,
  SettlementInstruction,
} from '../../connectors/contract/crypto';
import { type Chain, createChainStores, startChain } from '../../connectors/sandbox/chain/chain';
import type { ChainReport } from '../../connectors/sandbox/chain/follower';
import type { ChainTransaction } from '../../connectors/sandbox/chain/transactions';
import { createLogger } from '../../src/base/log';
import { paymentUri } from '../../src/domain/crypto/assets';
import { useDatabase } from '../support/database';
import { until } from './bank-world';

const database = useDatabase({ indexed: false });
let chain: Chain;
let activities: CryptoConnectorActivities;
/** Callbacks that the product has heard, each callback id once. */
let heard: Map<string, ChainReport>;
let deliveries: number;
/** Answers of the product's inbox that get lost on the way. */
let lostAnswers: number;
let aheadMs: number;
/** Time that the account is ahead of the bank, in ms. */
let offsetMs: number;
/** Time at which the clock stands still. */
let stoppedAt: number | undefined;
/** Time that the guard takes. */
let guardMs: number;
let isAwaited: boolean;
let isCurrent: boolean;

const open = async (autoplay = true) => {
  const now = () => new Date((stoppedAt ?? Date.now()) + aheadMs);
  const readTime = async () => new Date(now().getTime() + offsetMs);
  const stores = createChainStores(database.db, now, readTime);
  await stores.ensureIndexes();
  chain = startChain({
    mongo: database.mongo,
    stores,
    connector: 'sandbox',
    autoplay,
    isAwaited: async () => isAwaited,
    findOutdated: async () => {
      aheadMs += guardMs;
      return isCurrent ? undefined : { outcome: 'outdated' };
    },
    deliver: async (report) => {
      const known = heard.has(report.callback.callback_id);
      heard.set(report.callback.callback_id, report);
      deliveries += 1;
      if (lostAnswers > 0) {
        lostAnswers -= 1;
        throw new Error('the answer got lost');
      }
      return known ? 'duplicate' : 'delivered';
    },
    now,
    readTime,
    log: createLogger('test-chain', 'silent'),
  });
  activities = chain.activitiesAt('http://localhost:9');
};

beforeEach(async () => {
  [heard, deliveries, lostAnswers, aheadMs, offsetMs] = [new Map(), 0, 0, 0, 0];
  [isAwaited, isCurrent, guardMs, stoppedAt] = [true, true, 0, undefined];
  await open();
});
afterEach(async () => {
  await chain.stop();
});

const restart = async (autoplay?: boolean) => {
  await chain.stop();
  await open(autoplay);
};

const COIN = { asset: 'ETH', network: 'ethereum' } as const;

/** A payment of this many minor units, for which the product has asked. */
async function pay(amount: number, coin: { asset: string; network: string } = COIN) {
  const crypto_payment_id = randomUUID();
  const asked = { crypto_payment_id, ...coin, livemode: false };
  const quote = await activities.quoteRate({ ...asked, amount, currency: 'EUR' });
  if (quote.outcome !== 'quoted') throw new Error(quote.message);
  const { amount_due } = quote;
  const expires_at = new Date(Date.now() + 1_800_000).toISOString();
  const instruction = { ...asked, amount_due, expires_at };
  const given = await activities.giveAddress(instruction);
  if (given.outcome !== 'given') throw new Error(given.message);
  return { id: crypto_payment_id, due: BigInt(amount_due), given, instruction };
}

const told = (id: string) => [...heard.values()].filter(({ resource_id }) => resource_id === id);
const summary = (id: string) =>
  told(id).map(({ name, callback }) => `${name} ${callback.confirmations ?? ''}`.trim());

/** Lets time pass until the chain has no more to tell. */
async function play() {
  const due = database.db.collection<ChainTransaction>('chain_transactions');
  await until(
    async () => {
      aheadMs += 500;
      chain.routes.sent();
      return await due.countDocuments({ due_at: { $type: 'date' } });
    },
    (left) => left === 0,
  );
}

function settlement(change: Partial<SettlementInstruction> = {}): SettlementInstruction {
  return {
    crypto_settlement_id: randomUUID(),
    version: 1,
    ...COIN,
    amount: '10000000000000000001',
    wallet_address: '0x52908400098527886E0F7030069857D2E4169EE7',
    livemode: false,
    ...change,
  };
}

const moved = (resource_id: string) =>
  database.db.collection('chain_transactions').countDocuments({ resource_id });

describe('a payment', () => {
  it('has an address of its own, the same at each repeat, that a wallet can pay', async () => {
    for (const coin of [
      { asset: 'BTC', network: 'bitcoin' },
      COIN,
      { asset: 'USDC', network: 'ethereum' },
      { asset: 'USDT', network: 'tron' },
    ]) {
      const first = await pay(4_950, coin);
      expect(await activities.giveAddress(first.instruction)).toEqual(first.given);
      expect((await pay(4_950, coin)).given.address).not.toBe(first.given.address);
      const uri = paymentUri({ ...first.instruction, ...first.given });
      expect(uri).toContain(first.given.address);
    }
  });

  it('is not taken in live, nor for what the chain does not know', async () => {
    const { instruction } = await pay(4_950);
    const live = await activities.giveAddress({ ...instruction, livemode: true });
    expect(live).toMatchObject({ outcome: 'declined', code: 'live_not_supported' });
    const other = await activities.giveAddress({ ...instruction, asset: 'DOGE' });
    expect(other).toMatchObject({ outcome: 'declined', code: 'asset_not_supported' });
    await expect(pay(66_639)).rejects.toThrow('no rate');
  });

  it.each([
    [66_631, ['deposit 0', 'deposit 3'], 2n],
    [66_632, ['deposit 0', 'deposit 3'], 1n],
    [66_634, ['deposit 0', 'deposit 3'], 4n],
    [66_636, ['deposit 1', 'deposit_undone', 'deposit 1', 'deposit 3'], 2n],
    [66_637, ['deposit 0', 'deposit 3', 'deposit_undone'], 2n],
    [66_638, ['deposit 0'], 2n],
  ])('of %d plays %j', async (amount, steps, halves) => {
    const { id, due, instruction } = await pay(amount);
    await activities.giveAddress(instruction);
    await play();
    expect(summary(id)).toEqual(steps);
    expect(told(id)[0]?.callback.amount).toBe(String((due * halves) / 2n));
    const seen = new Set(told(id).map(({ callback }) => callback.occurred_at));
    expect(seen.size).toBe(1);
    expect(new Set(told(id).map(({ callback }) => callback.transaction_id)).size).toBe(1);
  });

  it('of 66633 comes in two transactions, to the unit', async () => {
    const { id, due } = await pay(66_633);
    await play();
    const sums = new Map(
      told(id).map(({ callback }) => [callback.transaction_id, callback.amount]),
    );
    expect([...sums.values()].reduce((sum, amount) => sum + BigInt(amount ?? 0), 0n)).toBe(due);
    expect(sums.size).toBe(2);
  });

  it('of 66635 comes from a source that fails its screening; another passes', async () => {
    for (const [amount, outcome] of [
      [66_635, 'failed'],
      [66_631, 'passed'],
    ] as const) {
      const { id } = await pay(amount);
      await play();
      const transaction_id = told(id)[0]?.callback.transaction_id ?? '';
      const question = { crypto_payment_id: id, transaction_id, ...COIN, livemode: false };
      expect((await activities.screenSource(question)).outcome).toBe(outcome);
    }
  });

  it('is in another block after a reorganisation', async () => {
    const { id } = await pay(66_636);
    await play();
    const blocks = told(id).flatMap(({ callback }) => callback.block_hash ?? []);
    expect(new Set(blocks).size).toBe(2);
  });
});

describe('a report', () => {
  it('whose answer gets lost is told again under the same id, and nothing is left out', async () => {
    lostAnswers = 3;
    const { id } = await pay(66_631);
    await play();
    expect(summary(id)).toEqual(['deposit 0', 'deposit 3']);
    // Three answers got lost, and two reports were delivered.
    expect(deliveries).toBeGreaterThanOrEqual(5);
  });

  it('waits for the chain that comes after one that was stopped', async () => {
    const { id } = await pay(66_631);
    await restart(false);
    await play();
    expect(summary(id)).toEqual(['deposit 0', 'deposit 3']);
  });

  it('has one id from two that work side by side', async () => {
    const first = chain;
    await open();
    const paid = await Promise.all([pay(66_631), pay(66_636)]);
    await play();
    await first.stop();
    expect(paid.map(({ id }) => summary(id).length)).toEqual([2, 4]);
    expect(heard.size).toBe(6);
  });
});

describe('a settlement', () => {
  it('is one transaction for twenty instructions at once, and completes', async () => {
    const instruction = settlement();
    const { crypto_settlement_id: id } = instruction;
    const tries = Array.from({ length: 20 }, () =>
      activities.sendSettlement(instruction).catch(() => undefined),
    );
    await Promise.all(tries);
    const answer = await activities.sendSettlement(instruction);
    expect(answer).toMatchObject({ outcome: 'sent' });
    expect(await activities.lookUpSettlement({ crypto_settlement_id: id })).toEqual(answer);
    expect(await moved(id)).toBe(1);
    await play();
    expect(summary(id)).toEqual(['completed']);
    const transaction_id = answer.outcome === 'sent' ? answer.transaction_id : '';
    expect(told(id)[0]?.callback.transaction_id).toBe(transaction_id);
  });

  it.each([
    ['66641', 'refused', []],
    ['66642', 'sent', ['failed']],
    ['66643', 'sent', []],
    ['66646', 'pending', ['sent', 'completed']],
  ])('of %s units is %s, and then %j', async (amount, outcome, steps) => {
    const instruction = settlement({ amount });
    expect((await activities.sendSettlement(instruction)).outcome).toBe(outcome);
    await play();
    expect(summary(instruction.crypto_settlement_id)).toEqual(steps);
  });

  it('is looked up when its answer or itself got lost', async () => {
    const look = ({ crypto_settlement_id }: SettlementInstruction) =>
      activities.lookUpSettlement({ crypto_settlement_id });
    const answerLost = settlement({ amount: '66644' });
    await expect(activities.sendSettlement(answerLost)).rejects.toThrow('answer');
    expect((await look(answerLost)).outcome).toBe('sent');
    const instructionLost = settlement({ amount: '66645' });
    await expect(activities.sendSettlement(instructionLost)).rejects.toThrow('instruction');
    expect((await look(instructionLost)).outcome).toBe('not_found');
    expect((await activities.sendSettlement(instructionLost)).outcome).toBe('sent');
    expect(await moved(instructionLost.crypto_settlement_id)).toBe(1);
  });

  it('is not sent against the record, and gives way to a simulation', async () => {
    isCurrent = false;
    const late = settlement();
    expect(await activities.sendSettlement(late)).toEqual({ outcome: 'outdated' });
    expect(await moved(late.crypto_settlement_id)).toBe(0);
    isCurrent = true;
    isAwaited = false;
    await activities.sendSettlement(late);
    await play();
    expect(told(late.crypto_settlement_id)).toEqual([]);
  });

  it('is not sent by an attempt that took too long', async () => {
    stoppedAt = Date.now();
    guardMs = 25_000;
    const slow = settlement();
    await expect(activities.sendSettlement(slow)).rejects.toThrow('took too long');
    expect(await activities.lookUpSettlement(slow)).toEqual({ outcome: 'not_found' });
    guardMs = 24_999;
    expect(await activities.sendSettlement(slow)).toMatchObject({ outcome: 'sent' });
  });

  it('waits for a simulation with autoplay off', async () => {
    await restart(false);
    const instruction = settlement();
    await activities.sendSettlement(instruction);
    await play();
    expect(told(instruction.crypto_settlement_id)).toEqual([]);
  });
});

test('a wallet takes a hundred transactions, each form once, also at once', async () => {
  const { id } = await pay(66633);
  const { wallets } = createChainStores(
    database.db,
    () => new Date(),
    async () => new Date(),
  );
  const nonces = Array.from({ length: 105 }, () => randomUUID());
  const reserve = (nonce: string) => wallets.reserve(id, nonce);
  const answers = await Promise.all([...nonces, ...nonces.slice(0, 3)].map(reserve));
  const accepted = nonces.filter((_nonce, at) => answers[at]);
  expect(accepted).toHaveLength(100);
  expect(await Promise.all(accepted.slice(0, 3).map(reserve))).toEqual([true, true, true]);
  expect(await reserve(randomUUID())).toBe(false);
});
