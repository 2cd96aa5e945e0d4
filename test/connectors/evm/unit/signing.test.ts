import fc from 'fast-check';
import { parseTransaction } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { buildCall, bumpFees, firstFees, sign } from '../../../../connectors/evm/signing';

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
