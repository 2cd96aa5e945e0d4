import fc from 'fast-check';
import * as Bloom from 'ox/Bloom';
import { bytesToHex, type Hex, HttpRequestError, parseTransaction, RpcRequestError } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { beginWithRetry, runRounds } from '../../../../connectors/evm/evm';
import {
  createNode,
  matchesBloom,
  mayContain,
  NodeFailure,
  toRefusal,
} from '../../../../connectors/evm/node';
import { buildCall, bumpFees, firstFees, sign } from '../../../../connectors/evm/signing';
import { readMovements } from '../../../../connectors/evm/traces';
import { createLogger } from '../../../../src/base/log';

test('a bloom contains a value by the rule of the chain', () => {
  const hex = (length: number) =>
    fc.uint8Array({ minLength: length, maxLength: length }).map((bytes) => bytesToHex(bytes));
  fc.assert(
    fc.property(hex(256), hex(20), hex(32), (bloom, address, topic) => {
      const expected = Bloom.contains(bloom, address) && Bloom.contains(bloom, topic);
      expect(mayContain(bloom, [address, topic])).toBe(expected);
    }),
  );
});

test('a bloom matches logs that have all its addresses and topics', () => {
  const address: Hex = '0xef2d6d194084c2de36e0dabfce45d046b37d1106';
  const filter = new Uint8Array(256);
  for (let bit = 0; bit < 2_048; bit += 1) {
    const one = new Uint8Array(256);
    const at = 255 - (bit >> 3);
    one[at] = 1 << (bit & 7);
    // A bit belongs to the value if the value is not found without it.
    const others = bytesToHex(one.map((byte) => ~byte));
    if (!Bloom.contains(others, address)) filter[at] = (filter[at] ?? 0) | (1 << (bit & 7));
  }
  const bloom = bytesToHex(filter);
  expect(matchesBloom(bloom, [{ address, topics: [] }])).toBe(true);
  expect(matchesBloom(bloom, [])).toBe(false);
  expect(matchesBloom(bloom, [{ address, topics: [`0x${'1'.repeat(64)}`] }])).toBe(false);
  expect(matchesBloom(`0x${'00'.repeat(256)}`, [])).toBe(true);
});

describe('a trace', () => {
  const BLOCK = `0x${'b'.repeat(64)}` as const;
  const HASH = `0x${'1'.repeat(64)}`;
  const [SHOP, PAYER, WALLET] = ['a', 'b', 'c'].map((digit) => `0x${digit.repeat(40)}`);
  const VALUE = '0xde0b6b3a7640000';
  const action = { callType: 'call', from: PAYER, to: SHOP, value: VALUE, input: '0x' };

  const buildCall = (traceAddress: number[], change: object = {}) => ({
    ...{ type: 'call', action, blockHash: BLOCK, blockNumber: 7, transactionHash: HASH },
    ...{ transactionPosition: 0, traceAddress, subtraces: 0, ...change },
  });
  const buildMovement = (from = PAYER) => ({ hash: HASH, from, to: SHOP, value: 10n ** 18n });
  const failed = { error: 'Reverted' };
  const end = { address: WALLET, refundAddress: SHOP, balance: VALUE };
  const creation = { type: 'create', action: { from: PAYER, value: '0x1', init: '0x' } };
  const reward = { type: 'reward', action: { author: SHOP, value: '0x1' }, transactionHash: null };

  test.each([
    ['a call', [buildCall([])], [buildMovement()]],
    [
      'the end of a contract',
      [buildCall([0], { type: 'suicide', action: end })],
      [buildMovement(WALLET)],
    ],
    [
      'a failed call, with all calls in it',
      [buildCall([], failed), buildCall([0]), buildCall([0, 3])],
      [],
    ],
    [
      'calls next to a failed one',
      [buildCall([]), buildCall([0], failed), buildCall([0, 3]), buildCall([1])],
      [buildMovement(), buildMovement()],
    ],
    ['borrowed code', [buildCall([0], { action: { ...action, callType: 'delegatecall' } })], []],
    ['a creation', [buildCall([0], creation)], []],
    ['a reward', [buildCall([0], reward)], []],
  ])('has the movements of %s', (_, traces, movements) => {
    expect(readMovements(traces, BLOCK)).toEqual(movements);
  });

  test('of another block, or of another shape, is refused', () => {
    const foreign = buildCall([], { blockHash: HASH });
    expect(() => readMovements([foreign], BLOCK)).toThrow('another block');
    expect(() => readMovements([{ result: {} }], BLOCK)).toThrow();
  });
});

const GWEI = 10n ** 9n;
const WALLET = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';
const USDC = '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48';
const account = privateKeyToAccount(`0x${'1'.repeat(64)}`);

describe('fees', () => {
  it('allow the base to rise, up to the cap', () => {
    const price = { base: 20n * GWEI, tip: GWEI };
    expect(firstFees(price, 200n * GWEI)).toEqual({ fee_max: 41n * GWEI, tip: GWEI });
    expect(firstFees(price, 30n * GWEI)).toEqual({ fee_max: 30n * GWEI, tip: GWEI });
    expect(firstFees(price, 20n * GWEI)).toBeUndefined();
  });

  it('rise by a tenth at least, as nodes require of a replacement, and never over the cap', () => {
    const wei = fc.bigInt(0n, 1_000n * GWEI);
    fc.assert(
      fc.property(wei, wei, wei, wei, wei, (fee_max, tip, base, newTip, cap) => {
        const old = { fee_max, tip: tip < fee_max ? tip : fee_max };
        const raised = bumpFees(old, { base, tip: newTip }, cap);
        if (raised === undefined) {
          expect(old.fee_max + old.fee_max / 8n + 1n > cap).toBe(true);
          return;
        }
        expect(raised.fee_max <= cap && raised.tip <= raised.fee_max).toBe(true);
        expect(raised.fee_max * 10n >= old.fee_max * 11n).toBe(true);
        expect(raised.tip * 10n >= old.tip * 11n).toBe(true);
      }),
    );
  });
});

it.each([
  ['ETH', { to: WALLET.toLowerCase(), value: 5n }],
  ['USDC', { to: USDC.toLowerCase() }],
] as const)(
  'a payment in %s is signed for its chain, and the same facts give the same bytes',
  async (asset, expected) => {
    const payment = { asset, amount: '5', wallet: WALLET, from: account.address } as const;
    const call = buildCall({ usdc: USDC }, payment);
    const fees = { fee_max: 41n * GWEI, tip: GWEI };
    const facts = { account, chainId: 1, call, nonce: 7, gas: 60_000n, now: new Date(0), fees };
    const attempt = await sign(facts);
    expect(await sign(facts)).toEqual(attempt);
    const transaction = parseTransaction(attempt.bytes);
    expect(transaction).toMatchObject({ ...expected, chainId: 1, nonce: 7, type: 'eip1559' });
  },
);

const log = createLogger('test-rounds', 'silent');

/** Creates a connector whose beginnings and rounds have these results; the last one stops it. */
function createScripted(results: (Error | boolean)[]) {
  const stopping = new AbortController();
  const left = [...results];
  const round = async () => {
    const next = left.shift();
    if (left.length === 0) stopping.abort();
    if (next instanceof Error) throw next;
    return next === true;
  };
  const evm = { round, begin: async () => void (await round()) };
  return { deps: { evm, pollMs: 60_000, signal: stopping.signal, log }, left };
}

test('the start of the connector waits for a node that does not answer, and fails for any other reason', async () => {
  const patient = createScripted([new NodeFailure('away'), false]);
  await beginWithRetry(patient.deps);
  expect(patient.left).toEqual([]);
  const wrong = createScripted([new Error('The node is on chain 5.'), false]);
  await expect(beginWithRetry(wrong.deps)).rejects.toThrow('on chain 5');
});

test('rounds follow at once while there is more, continue after a failure, and stop', async () => {
  const busy = createScripted([true, true, new NodeFailure('away'), false]);
  await runRounds(busy.deps);
  expect(busy.left).toEqual([]);
});

test.each(['begin', 'round'] as const)(
  'a connector stops although a silent node holds up its %s',
  async (held) => {
    const stopping = new AbortController();
    const hang = () => {
      stopping.abort();
      return new Promise<never>(() => {});
    };
    const evm = { begin: async () => {}, round: async () => false, [held]: hang };
    const deps = { evm, pollMs: 1, signal: stopping.signal, log, graceMs: 1 };
    await beginWithRetry(deps);
    await runRounds(deps);
    expect(stopping.signal.aborted).toBe(true);
  },
);

const url = 'http://node.example';
const buildAnswer = (message: string) =>
  new RpcRequestError({ body: {}, url, error: { code: -32000, message } });

test.each<[string, Error, ReturnType<typeof toRefusal>]>([
  ['already known', buildAnswer('already known'), { outcome: 'held' }],
  ['AlreadyKnown', buildAnswer('AlreadyKnown'), { outcome: 'held' }],
  ['imported', buildAnswer('transaction already imported'), { outcome: 'held' }],
  ['Known', buildAnswer('Known transaction'), { outcome: 'held' }],
  ['low', buildAnswer('nonce too low'), { outcome: 'refused', reason: 'nonce too low' }],
  ['no answer', new HttpRequestError({ url }), undefined],
  ['no connection', new Error('socket hang up'), undefined],
])('a node holds or refuses a transaction by its answer: %s', (_, error, refusal) => {
  expect(toRefusal(error)).toEqual(refusal);
});

test('a node that does not answer is named by the call, without its address', async () => {
  const calling = createNode('http://127.0.0.1:9/secret').chainId();
  await expect(calling).rejects.toThrow(
    /^The node did not answer eth_chainId: (?!.*(?:127|secret))/,
  );
});
