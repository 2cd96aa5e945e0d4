import { deriveAddress } from '../../../connectors/sandbox/chain/addresses';
import {
  CRYPTO_MAGIC_AMOUNTS,
  SETTLEMENT_MAGIC_AMOUNTS,
} from '../../../connectors/sandbox/chain/magic-amounts';
import { planDeposit, planPayer } from '../../../connectors/sandbox/chain/plan';
import { buildQuote, parseTypedAmount } from '../../../connectors/sandbox/chain/rates';
import { getBehavior } from '../../../connectors/sandbox/magic-amounts';
import { NETWORKS } from '../../../src/domain/crypto/assets';
import { addressFault } from '../../../src/encryption/wallet-address';

describe('addresses', () => {
  it.each(NETWORKS)('of %s have a right checksum', (network) => {
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']) {
      expect(addressFault(network, deriveAddress[network](name), false)).toBeUndefined();
    }
  });

  it('of bitcoin are of its test network', () => {
    expect(deriveAddress.bitcoin('a')).toMatch(/^tb1q/);
    expect(addressFault('bitcoin', deriveAddress.bitcoin('a'), true)).toBeDefined();
  });

  it('are one for each payment, the same each time', () => {
    for (const of of Object.values(deriveAddress)) {
      expect(of('a')).toBe(of('a'));
      expect(of('a')).not.toBe(of('b'));
    }
  });
});

describe('rates', () => {
  it.each([
    ['ETH', 'ethereum', 4_950, 'EUR', '19800000000000000'],
    ['ETH', 'ethereum', 1, 'EUR', '4000000000000'],
    ['BTC', 'bitcoin', 1, 'EUR', '17'],
    ['USDC', 'ethereum', 4_950, 'EUR', '49500000'],
    ['USDT', 'tron', 50, 'JPY', '50000000'],
    ['USDT', 'tron', 1_234, 'KWD', '1234000'],
  ] as const)('quote %s on %s for %d %s, rounded up to digits that people type', (...asked) => {
    const [asset, network, amount, currency, due] = asked;
    expect(buildQuote({ asset, network }, amount, currency).amount_due).toBe(due);
  });
});

describe('a typed amount', () => {
  it.each([
    ['0.5', 18, '500000000000000000'],
    [' 12,25 ', 6, '12250000'],
    ['000000000001', 8, '100000000'],
    ['0.0000001', 6, undefined],
    ['0.000', 6, undefined],
    ['1e3', 6, undefined],
    ['-1', 6, undefined],
    ['', 6, undefined],
  ])('of %j with %d digits is %s', (text, decimals, units) => {
    expect(parseTypedAmount(text, decimals)).toBe(units);
  });
});

describe('plans', () => {
  it('report a deposit when it is seen and when it counts', () => {
    const ticks = planDeposit('confirms', true).map(({ confirmations }) => confirmations);
    expect(ticks).toEqual([0, 3]);
    expect(planDeposit('confirms', false)).toHaveLength(1);
  });

  it('take an undone deposit into another block, or leave it undone', () => {
    const early = planDeposit('reorged_early', true);
    expect(early.map(({ name, branch }) => [name, branch])).toEqual([
      ['deposit', 0],
      ['deposit_undone', undefined],
      ['deposit', 1],
      ['deposit', 1],
    ]);
    expect(planDeposit('reorged_late', true).at(-1)?.name).toBe('deposit_undone');
  });

  it('split to the unit, and let every magic amount but the declined one pay', () => {
    const split = planPayer('pays_in_two', 10n ** 24n + 1n);
    expect(split.reduce((all, { amount }) => all + amount, 0n)).toBe(10n ** 24n + 1n);
    for (const amount of Object.keys(CRYPTO_MAGIC_AMOUNTS).map(Number)) {
      const behaviour = getBehavior(CRYPTO_MAGIC_AMOUNTS, amount);
      expect(planPayer(behaviour, 100n).length > 0).toBe(behaviour !== 'declined');
    }
    expect(planPayer(getBehavior(CRYPTO_MAGIC_AMOUNTS, 4_950), 100n)).toEqual([]);
  });

  it('know a magic settlement by its exact amount only', () => {
    expect(getBehavior(SETTLEMENT_MAGIC_AMOUNTS, 66_641)).toBe('refused');
    const scaled = Number('66641000000000000000000');
    expect(getBehavior(SETTLEMENT_MAGIC_AMOUNTS, scaled)).toBe('normal');
  });
});
