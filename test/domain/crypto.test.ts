import fc from 'fast-check';
import {
  ASSET_CODES,
  ASSETS,
  assetRules,
  CRYPTO_METHODS,
  cryptoMethod,
  formatDecimalUnits,
  formatUnits,
  NETWORKS,
  parseUnits,
  paymentUri,
  readWindows,
  sufficientAmount,
} from '../../src/domain/crypto/assets';
import { readCryptoCallback } from '../../src/domain/crypto/callback';
import { type SimulatedDeposit, simulateReport } from '../../src/domain/crypto/simulation';
import { Faults } from '../../src/domain/shape';
import { CryptoReport } from '../../src/domain/wire/callback';

const ETH = { asset: 'ETH', network: 'ethereum' } as const;
const USDC = { asset: 'USDC', token_contract: '0xA' };

describe('the windows of assets', () => {
  test.each([
    [' BTC=60, ETH=15,', { BTC: 3_600, ETH: 900 }],
    ['', {}],
  ])('are read from "%s" in minutes', (text, seconds) => {
    expect([...readWindows(text)]).toEqual(Object.entries(seconds));
  });

  test.each(['DOGE=10', 'BTC', 'BTC=0', 'BTC=1.5', 'BTC=1441', 'BTC=-5', '=5'])(
    'cannot be "%s", and the error names it',
    (entry) => expect(() => readWindows(`ETH=15,${entry}`)).toThrow(entry),
  );
});

describe('amounts of assets', () => {
  test.each([
    ['1500000000000000000', ETH, '1.5 ETH'],
    ['1', ETH, '0.000000000000000001 ETH'],
    ['1000000000000000000000001', ETH, '1000000.000000000000000001 ETH'],
    [-10_000_000n, { asset: 'USDC', network: 'ethereum' }, '-10 USDC'],
    [0n, ETH, '0 ETH'],
  ] as const)('of %s units in %j read as %s', (units, asset, text) => {
    expect(formatUnits(units, asset)).toBe(text);
  });

  test('keep every digit', () => {
    const amounts = fc.bigInt({ min: -(10n ** 24n), max: 10n ** 24n });
    fc.assert(
      fc.property(amounts, fc.nat(18), (units, decimals) => {
        const [whole = '', fraction = ''] = formatDecimalUnits(units, decimals).split('.');
        expect(BigInt(whole + fraction.padEnd(decimals, '0'))).toBe(units);
        expect(parseUnits(String(units))).toBe(units);
      }),
    );
  });

  test.each(['', '1.0', '1e3', ' 1', '0x1'])('must be integers, not "%s"', (text) => {
    expect(() => parseUnits(text)).toThrow(RangeError);
  });
});

describe('assets', () => {
  test('each have one network', () => {
    expect(ASSETS.map(({ asset }) => asset)).toEqual(ASSET_CODES);
    expect([...new Set(ASSETS.map(({ network }) => network))]).toEqual(NETWORKS);
    expect(assetRules('USDC', 'tron')).toBeUndefined();
    expect(CRYPTO_METHODS).toEqual(['btc_bitcoin', 'eth_ethereum', 'usdc_ethereum', 'usdt_tron']);
    expect(cryptoMethod(ETH)).toBe('eth_ethereum');
  });

  test.each([
    [ETH, 'ethereum:ADDR@1?value=1500000'],
    [USDC, 'ethereum:0xA@1/transfer?address=ADDR&uint256=1500000'],
    [{ asset: 'BTC', network: 'bitcoin', chain_id: null }, 'bitcoin:ADDR?amount=0.015'],
    [{ asset: 'USDT', network: 'tron' }, 'tron:ADDR?amount=1.5&token=USDT'],
  ])('have a payment URI that wallets open: %j', (to, uri) => {
    const payment = { ...ETH, address: 'ADDR', amount_due: '1500000', chain_id: 1, ...to };
    expect(paymentUri(payment)).toBe(uri);
  });

  test.each([
    ['1000', undefined, 1_000n],
    ['1000', 0.3, 997n],
    ['999', 0.3, 997n],
    ['10', 2, 10n],
    ['100000000000000000001', 0.01, 99_990_000_000_000_000_001n],
    ['1000', 0.29, 998n],
  ])(
    'of %s with a tolerance of %s percent is received from %s on',
    (amount_due, percent, least) => {
      const payment = { amount_due, ...(percent && { tolerance_percent: percent }) };
      expect(sufficientAmount(payment)).toBe(least);
    },
  );
});

describe('a report of a crypto connector', () => {
  test('is valid in the workflow exactly when the API accepts it', () => {
    const payload = fc.record(
      {
        callback_id: fc.constantFrom('', 'a', 1),
        occurred_at: fc.constantFrom('2026-11-22T05:00:00Z', 'now'),
        transaction_id: fc.constantFrom('0xab', '', undefined),
        amount: fc.constantFrom('1', '01', '-1', 5, '1'.repeat(28), '1'.repeat(29), undefined),
        confirmations: fc.constantFrom(0, 3, -1, 1.5, undefined),
        block_number: fc.constantFrom(7, 'seven', undefined),
        screening: fc.constantFrom('passed', 'failed', 'maybe', undefined),
        from: fc.constantFrom('0xpayer', undefined),
      },
      { requiredKeys: [] },
    );
    const resource_id = '0d1f6a52-6f1c-4d1c-8f6e-2f5a4f3b2c1d';
    const about = { connector: 'evm', resource: 'crypto_payment', resource_id, name: 'deposit' };
    fc.assert(
      fc.property(payload, (callback) => {
        const isAccepted = CryptoReport.safeParse({ ...about, callback }).success;
        expect(!(readCryptoCallback(callback) instanceof Faults)).toBe(isAccepted);
      }),
    );
  });
});

describe('a simulated deposit', () => {
  const fresh = { transaction_id: '0xfresh', now: '2026-01-01T00:00:10.000Z' };
  const seen = { transaction_id: '0xseen', amount: '40', seen_at: '2026-01-01T00:00:05.000Z' };
  const due = { amount_due: '101', amount_received: '0', required_confirmations: 3 };
  const simulate = (request: SimulatedDeposit, change = {}) =>
    simulateReport({ ...due, deposits: [seen], ...change }, request, fresh);

  test.each([
    ['an amount', { amount: '7' }, '7', 'passed'],
    ['received', { event: 'received' }, '101', 'passed'],
    ['underpaid', { event: 'underpaid' }, '50', 'passed'],
    ['held', { event: 'held' }, '101', 'failed'],
    ['held and an amount', { event: 'held', amount: '7' }, '7', 'failed'],
  ] as const)('by %s is new and counts', (_, request, amount, screening) => {
    const { transaction_id, now: occurred_at } = fresh;
    expect(simulate(request)).toMatchObject({
      name: 'deposit',
      callback: { transaction_id, amount, screening, confirmations: 3, occurred_at },
    });
  });

  test.each([
    ['100', '1'],
    ['101', '101'],
    ['500', '101'],
  ])('after %s of 101 were received pays %s: what is missing, else all again', (...all) => {
    const [amount_received, amount] = all;
    const { callback } = simulate({ event: 'received' }, { amount_received });
    expect(callback.amount).toBe(amount);
  });

  test('that is known is confirmed as the chain has seen it', () => {
    const { callback } = simulate({ transaction_id: '0xseen' });
    expect(callback).toMatchObject({ amount: '40', occurred_at: seen.seen_at, confirmations: 3 });
    expect(callback.screening).toBeUndefined();
  });

  test.each([
    ['the last one', {}, {}, '0xseen'],
    ['the one that is named', { transaction_id: '0xother' }, {}, '0xother'],
    ['a new one when there is none', {}, { deposits: [] }, '0xfresh'],
  ])('is undone: %s', (_, request, change, transaction_id) => {
    const { name, callback } = simulate({ event: 'deposit_undone', ...request }, change);
    expect([name, callback.transaction_id]).toEqual(['deposit_undone', transaction_id]);
  });
});
