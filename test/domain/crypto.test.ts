import fc from 'fast-check';
import type {
  AddressAnswer,
  AddressInstruction,
  CryptoConnectorActivities,
  RateAnswer,
  RateQuestion,
  ScreeningAnswer,
  ScreeningQuestion,
  SettlementAnswer,
  SettlementInstruction,
  SettlementLookup,
} from '../../connectors/contract/crypto';
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
} from '../../src/domain/crypto/assets';
import {
  CRYPTO_PAYMENT_CALLBACKS,
  CRYPTO_SETTLEMENT_CALLBACKS,
  type CryptoPaymentCallbackName,
  type CryptoSettlementCallbackName,
  readCryptoCallback,
} from '../../src/domain/crypto/callback';
import { Faults } from '../../src/domain/shape';
import { CryptoReport } from '../../src/domain/wire/callback';

const ETH = { asset: 'ETH', network: 'ethereum' } as const;

test('windows differ by asset as the installation says, and faults are named', () => {
  expect([...readWindows(' BTC=60, ETH=15,')]).toEqual([
    ['BTC', 3_600],
    ['ETH', 900],
  ]);
  expect([...readWindows('')]).toEqual([]);
  for (const entry of ['DOGE=10', 'BTC', 'BTC=0', 'BTC=1.5', 'BTC=1441', 'BTC=-5', '=5']) {
    expect(() => readWindows(`ETH=15,${entry}`)).toThrow(entry);
  }
});

describe('amounts', () => {
  test('are exact for people, however large', () => {
    expect(formatUnits('1500000000000000000', ETH)).toBe('1.5 ETH');
    expect(formatUnits('1', ETH)).toBe('0.000000000000000001 ETH');
    expect(formatUnits('1000000000000000000000001', ETH)).toBe('1000000.000000000000000001 ETH');
    expect(formatUnits(-10_000_000n, { asset: 'USDC', network: 'ethereum' })).toBe('-10 USDC');
    expect(formatUnits(0n, ETH)).toBe('0 ETH');
  });

  test('come back from the text to the unit', () => {
    const amounts = fc.bigInt({ min: -(10n ** 24n), max: 10n ** 24n });
    fc.assert(
      fc.property(amounts, fc.nat(18), (units, decimals) => {
        const [whole = '', fraction = ''] = formatDecimalUnits(units, decimals).split('.');
        expect(BigInt(whole + fraction.padEnd(decimals, '0'))).toBe(units);
        expect(parseUnits(String(units))).toBe(units);
      }),
    );
  });

  test('are integers and nothing else', () => {
    for (const text of ['', '1.0', '1e3', ' 1', '0x1']) {
      expect(() => parseUnits(text)).toThrow(RangeError);
    }
  });
});

describe('assets', () => {
  test('each have one network', () => {
    expect(ASSETS.map(({ asset }) => asset)).toEqual(ASSET_CODES);
    expect([...new Set(ASSETS.map(({ network }) => network))]).toEqual(NETWORKS);
    expect(assetRules('USDC', 'tron')).toBeUndefined();
    expect(CRYPTO_METHODS).toEqual(['btc_bitcoin', 'eth_ethereum', 'usdc_ethereum', 'usdt_tron']);
  });

  test('have a URI that wallets open', () => {
    const address = '0x52908400098527886E0F7030069857D2E4169EE7';
    const uri = (to: object) =>
      paymentUri({ ...ETH, address, amount_due: '1500000', chain_id: 1, ...to });
    expect(uri({})).toBe(`ethereum:${address}@1?value=1500000`);
    expect(uri({ asset: 'USDC', token_contract: '0xA0b8' })).toBe(
      `ethereum:0xA0b8@1/transfer?address=${address}&uint256=1500000`,
    );
    expect(uri({ asset: 'BTC', network: 'bitcoin', address: 'bc1q', chain_id: null })).toBe(
      'bitcoin:bc1q?amount=0.015',
    );
    expect(uri({ asset: 'USDT', network: 'tron', address: 'T9' })).toBe(
      'tron:T9?amount=1.5&token=USDT',
    );
  });
});

describe('a report of a crypto connector', () => {
  const id = '0d1f6a52-6f1c-4d1c-8f6e-2f5a4f3b2c1d';
  const seen = { callback_id: 'a:1', occurred_at: '2026-11-22T05:00:00Z', transaction_id: '0xab' };

  test('reads alike at the border and in the workflow', () => {
    const payload = fc.record(
      {
        callback_id: fc.constantFrom('', 'a', 1),
        occurred_at: fc.constantFrom('2026-11-22T05:00:00Z', 'now'),
        transaction_id: fc.constantFrom('0xab', '', undefined),
        amount: fc.constantFrom('1', '01', '-1', 5, '1'.repeat(28), '1'.repeat(29), undefined),
        confirmations: fc.constantFrom(0, 3, -1, 1.5, undefined),
        block_number: fc.constantFrom(7, 'seven', undefined),
        screening: fc.constantFrom('passed', 'failed', 'maybe', undefined),
      },
      { requiredKeys: [] },
    );
    const about = {
      connector: 'evm',
      resource: 'crypto_payment',
      resource_id: id,
      name: 'deposit',
    };
    fc.assert(
      fc.property(payload, (callback) => {
        const atBorder = CryptoReport.safeParse({ ...about, callback }).success;
        expect(!(readCryptoCallback(callback) instanceof Faults)).toBe(atBorder);
      }),
    );
  });

  test('keeps what is known and drops the rest', () => {
    expect(readCryptoCallback({ ...seen, amount: '10', from: '0xpayer' })).toEqual({
      ...seen,
      amount: '10',
    });
  });
});

test('a connector of the contract can be written', async () => {
  const quote = async ({ amount }: RateQuestion): Promise<RateAnswer> => ({
    outcome: 'quoted',
    amount_due: String(amount),
    rate: '2000',
  });
  const give = async ({ crypto_payment_id }: AddressInstruction): Promise<AddressAnswer> => ({
    outcome: 'given',
    address: `0x${crypto_payment_id}`,
    required_confirmations: 12,
  });
  const screen = async (_: ScreeningQuestion): Promise<ScreeningAnswer> => ({ outcome: 'passed' });
  const send = async (_: SettlementInstruction): Promise<SettlementAnswer> => ({
    outcome: 'pending',
  });
  const lookUp = async (): Promise<SettlementLookup> => ({ outcome: 'not_found' });
  const connector: CryptoConnectorActivities = {
    quoteRate: quote,
    giveAddress: give,
    screenSource: screen,
    sendSettlement: send,
    lookUpSettlement: lookUp,
  };
  expect(await connector.lookUpSettlement({ crypto_settlement_id: 'a' })).toEqual({
    outcome: 'not_found',
  });
});

test('its reports have names of their own', () => {
  const ofPayment: readonly CryptoPaymentCallbackName[] = CRYPTO_PAYMENT_CALLBACKS;
  const ofSettlement: readonly CryptoSettlementCallbackName[] = CRYPTO_SETTLEMENT_CALLBACKS;
  expect(ofPayment).toEqual(['deposit', 'deposit_undone', 'wrong_asset', 'expired']);
  expect(ofSettlement).toEqual(['sent', 'completed', 'failed']);
  expect(cryptoMethod(ETH)).toBe('eth_ethereum');
});
