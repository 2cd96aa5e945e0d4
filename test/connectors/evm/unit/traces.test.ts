import { readMovements } from '../../../../connectors/evm/traces';

const BLOCK = `0x${'b'.repeat(64)}` as const;
const HASH = `0x${'1'.repeat(64)}`;
const [SHOP, PAYER, WALLET] = ['a', 'b', 'c'].map((digit) => `0x${digit.repeat(40)}`);

const call = (traceAddress: number[], change: object = {}) => ({
  type: 'call',
  action: { callType: 'call', from: PAYER, to: SHOP, value: '0xde0b6b3a7640000', input: '0x' },
  blockHash: BLOCK,
  blockNumber: 7,
  transactionHash: HASH,
  transactionPosition: 0,
  traceAddress,
  subtraces: 0,
  ...change,
});
const moved = (from = PAYER) => ({ hash: HASH, from, to: SHOP, value: 10n ** 18n });

test('calls move ether, and contracts that end hand theirs on', () => {
  const action = { address: WALLET, refundAddress: SHOP, balance: '0xde0b6b3a7640000' };
  const end = call([0], { type: 'suicide', action });
  expect(readMovements([call([]), end], BLOCK)).toEqual([moved(), moved(WALLET)]);
});

test('a call that failed moves none, and none that it led to', () => {
  const failed = { error: 'Reverted' };
  expect(readMovements([call([], failed), call([0]), call([0, 3])], BLOCK)).toEqual([]);
  expect(readMovements([call([]), call([0], failed), call([0, 3]), call([1])], BLOCK)).toEqual([
    moved(),
    moved(),
  ]);
});

test('code that is borrowed moves none, nor does what is made or rewarded', () => {
  const borrowed = call([0]);
  const others = [
    { ...borrowed, action: { ...borrowed.action, callType: 'delegatecall' } },
    { ...borrowed, type: 'create', action: { from: PAYER, value: '0x1', init: '0x' } },
    { ...borrowed, type: 'reward', action: { author: SHOP, value: '0x1' }, transactionHash: null },
  ];
  expect(readMovements(others, BLOCK)).toEqual([]);
});

test('traces of another block, or of another shape, are refused', () => {
  expect(() => readMovements([call([], { blockHash: HASH })], BLOCK)).toThrow('another block');
  expect(() => readMovements([{ result: {} }], BLOCK)).toThrow();
});
