import { parseFeeName, payoutFee } from '../../src/domain/payout/fees';

test('a fee is that of the currency, else that of the rail, else nothing', () => {
  const fees = { card_payout: 50, 'card_payout:JPY': 80, 'card_payout:KWD': 0 } as const;
  expect(payoutFee(fees, 'card_payout', 'EUR')).toBe(50);
  expect(payoutFee(fees, 'card_payout', 'JPY')).toBe(80);
  expect(payoutFee(fees, 'card_payout', 'KWD')).toBe(0);
  expect(payoutFee(fees, 'sepa_instant', 'EUR')).toBe(0);
});

test.each([
  ['card_payout', 'card_payout'],
  ['card_payout:JPY', 'card_payout:JPY'],
  ['sepa_instant:EUR', 'sepa_instant:EUR'],
  ['sepa_instant:JPY', undefined],
  ['card_payout:', undefined],
  ['card_payout:jpy', undefined],
  ['card_payout:JPY:EUR', undefined],
  ['ideal', undefined],
  ['', undefined],
])('"%s" names the fee %s', (text, name) => {
  expect(parseFeeName(text)).toBe(name);
});
