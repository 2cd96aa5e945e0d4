import fc from 'fast-check';
import * as Bloom from 'ox/Bloom';
import { bytesToHex, type Hex } from 'viem';
import { matchesBloom, mayContain } from '../../../../connectors/evm/blooms';
import { readMovements } from '../../../../connectors/evm/traces';

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
