import { deriveAddress } from '../../../connectors/sandbox/chain/activities';
import {
  CRYPTO_MAGIC_AMOUNTS,
  SETTLEMENT_MAGIC_AMOUNTS,
} from '../../../connectors/sandbox/chain/magic-amounts';
import { planPayer } from '../../../connectors/sandbox/chain/plan';
import { buildQuote, parseTypedAmount } from '../../../connectors/sandbox/chain/rates';
import { getBehavior } from '../../../connectors/sandbox/magic-amounts';
import { NETWORKS } from '../../../src/domain/crypto/assets';
import { addressFault } from '../../../src/encryption/wallet-address';

test.each(NETWORKS)('each payment has its own address of %s, with a valid checksum', (network) => {
  const derive = deriveAddress[network];
  const addresses = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].map(derive);
  for (const address of addresses) expect(addressFault(network, address, false)).toBeUndefined();
  expect(new Set(addresses).size).toBe(8);
  expect(derive('a')).toBe(addresses[0]);
});

test('an address of Bitcoin is one of its test network', () => {
  expect(deriveAddress.bitcoin('a')).toMatch(/^tb1q/);
  expect(addressFault('bitcoin', deriveAddress.bitcoin('a'), true)).toBeDefined();
});

test.each([
  ['ETH', 'ethereum', 4_950, 'EUR', '19800000000000000'],
  ['ETH', 'ethereum', 1, 'EUR', '4000000000000'],
  ['BTC', 'bitcoin', 1, 'EUR', '17'],
  ['USDC', 'ethereum', 4_950, 'EUR', '49500000'],
  ['USDT', 'tron', 50, 'JPY', '50000000'],
  ['USDT', 'tron', 1_234, 'KWD', '1234000'],
] as const)(
  'a quote in %s on %s for %d %s is rounded up to digits that people can type: %s',
  (...row) => {
    const [asset, network, amount, currency, due] = row;
    expect(buildQuote({ asset, network }, amount, currency).amount_due).toBe(due);
  },
);

test.each([
  ['0.5', 18, '500000000000000000'],
  [' 12,25 ', 6, '12250000'],
  ['000000000001', 8, '100000000'],
  ['0.0000001', 6, undefined],
  ['0.000', 6, undefined],
  ['1e3', 6, undefined],
  ['-1', 6, undefined],
  ['', 6, undefined],
  ['9999999999', 18, '9999999999000000000000000000'],
  ['10000000000', 18, undefined],
])('a typed amount of %j with %d digits is %s', (text, decimals, units) => {
  expect(parseTypedAmount(text, decimals)).toBe(units);
});

test('a payer splits an amount to the unit, and pays each magic amount but the declined one', () => {
  const split = planPayer('pays_in_two', 10n ** 24n + 1n);
  expect(split.reduce((all, { amount }) => all + amount, 0n)).toBe(10n ** 24n + 1n);
  for (const amount of Object.keys(CRYPTO_MAGIC_AMOUNTS).map(Number)) {
    const behavior = getBehavior(CRYPTO_MAGIC_AMOUNTS, amount);
    expect(planPayer(behavior, 100n).length > 0).toBe(behavior !== 'declined');
  }
  expect(planPayer(getBehavior(CRYPTO_MAGIC_AMOUNTS, 4_950), 100n)).toEqual([]);
});

test('a magic settlement has the exact amount', () => {
  expect(getBehavior(SETTLEMENT_MAGIC_AMOUNTS, 66_641)).toBe('refused');
  const scaled = Number('66641000000000000000000');
  expect(getBehavior(SETTLEMENT_MAGIC_AMOUNTS, scaled)).toBe('normal');
});
