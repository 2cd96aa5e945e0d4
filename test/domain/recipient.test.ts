import { isIban } from '../../src/domain/banks/iban';
import {
  detectScheme,
  faultsAt,
  getLast4,
  isBirthDate,
  isCardNumber,
  type RecipientDetails,
  recipientDetails,
  recipientFacts,
} from '../../src/domain/payout/recipient';

const CARD = {
  ...{
    type: 'card' as const,
    first_name: 'Ada',
    last_name: 'Lovelace',
    card_number: '4111111111111111',
  },
  ...{ expiry_month: '02', expiry_year: '2028', date_of_birth: '1990-02-28' },
};
const buildCard = (changes: Partial<RecipientDetails> = {}) =>
  recipientDetails({ ...CARD, ...changes });
const buildBank = (changes: Partial<RecipientDetails>) =>
  recipientDetails({ type: 'bank_account', first_name: 'A', last_name: 'B', ...changes });

/** Between groups of four, and around. */
const PASTED_IBANS = [
  ...['\u00a0', '\u2009', '\u202f', '\u3000', '\u200b', '\u2060', '\ufeff', '\u00ad', '\t', '\n'],
  ...['-', '\u2010', '\u2011', '\u2013', '\u2014', '\u2212', ' \u200b- '],
].map((sign) => `${sign}NL91${sign}ABNA${sign}0417${sign}1643${sign}00${sign}`);

test.each<[what: string, isValid: (text: string) => boolean, valid: string[], wrong: string[]]>([
  [
    ...(['card number', isCardNumber] as const),
    ['4111111111111111', '4222222222222', '000000000000', '0000000000000000000'],
    [
      ...['4111111111111112', '1411111111111111', '00000000000', '00000000000000000000'],
      ...['4111 1111 1111 1111', '４１１１１１１１１１１１１１１１'],
    ],
  ],
  [
    ...(['IBAN', isIban] as const),
    ['NL91ABNA0417164300', 'nl91 abna 0417 1643 00', 'GB29NWBK60161331926819', ...PASTED_IBANS],
    [
      ...['NL92ABNA0417164300', 'NL91ABNA041716430', 'NL91_ABNA_0417_1643_00', '', '   '],
      ...['NL91.ABNA.0417.1643.00', 'ＮＬ91ABNA0417164300', 'NL91ABNA04171643٠٠'],
      ...['ßL91ABNA0417164300', 'ZZ91ABNA0417164300'],
    ],
  ],
  [
    ...(['date of birth', isBirthDate] as const),
    ['1900-01-01', '2000-02-29'],
    [
      '1899-12-31',
      '1900-02-29',
      '2023-02-30',
      '2023-13-01',
      '2023-1-1',
      '2023-01-01T00:00:00Z',
      '',
    ],
  ],
])('a %s is valid in its forms and no others', (_what, isValid, valid, wrong) => {
  expect([...valid, ...wrong].filter(isValid)).toEqual(valid);
});

test.each([
  ['4000000000000000', 'visa'],
  ['5099999999999999', null],
  ['5100000000000000', 'mastercard'],
  ['5599999999999999', 'mastercard'],
  ['5600000000000000', null],
  ['2220990000000000', null],
  ['2221000000000000', 'mastercard'],
  ['2720999999999999', 'mastercard'],
  ['2721000000000000', null],
  ['340000000000000', 'amex'],
  ['350000000000000', null],
  ['370000000000000', 'amex'],
  ['6011000000000000', null],
])('the network of the card %s is %s', (number, scheme) => {
  expect(detectScheme(number)).toBe(scheme);
});

test.each([
  ['2028-02-29T23:59:59.999Z', []],
  ['2028-03-01T00:00:00.000Z', ['expiry_month', 'expiry_year']],
  ['2027-12-31T00:00:00.000Z', []],
  ['2029-01-01T00:00:00.000Z', ['expiry_month', 'expiry_year']],
  ['1990-02-28T23:59:59.999Z', ['date_of_birth']],
  ['1990-03-01T00:00:00.000Z', []],
])('a card of 02/2028 of someone born on 1990-02-28 has, at %s, the faults %j', (now, fields) => {
  expect(faultsAt(buildCard(), new Date(now)).map(({ field }) => field)).toEqual(fields);
});

const FACTS = { scheme: null, card_expires: null, iban_in_sepa: null };

test('the facts of a card hold only what a rail checks', () => {
  expect(recipientFacts(buildCard({ address_line1: 'Street 1', postal_code: '1' }))).toEqual({
    ...{ ...FACTS, type: 'card', scheme: 'visa', card_expires: '2028-02' },
    has: ['card_number', 'date_of_birth', 'address_line1', 'postal_code'],
  });
});

test.each([
  ['NL91 abna 0417 1643 00', true, '4300'],
  ['CH9300762011623852957', true, '2957'],
  ['RS35260005601001611379', true, '1379'],
  ['TR330006100519786457841326', false, '1326'],
])('the account %s is in the SEPA area: %s', (iban, iban_in_sepa, last4) => {
  const details = buildBank({ iban });
  const facts = { ...FACTS, type: 'bank_account', has: ['iban'], iban_in_sepa };
  expect([recipientFacts(details), getLast4(details)]).toEqual([facts, last4]);
});

test('an account is identified by its IBAN, or without one by its number', () => {
  const uk = { sort_code: '601613', account_number: '31926819' };
  expect(getLast4(buildBank(uk))).toBe('6819');
  expect(getLast4(buildBank({ ...uk, iban: 'NL91ABNA0417164300' }))).toBe('4300');
  expect(recipientFacts(buildBank(uk)).iban_in_sepa).toBeNull();
});

test('recipient details have null for what is missing, and normal forms of IBAN and BIC', () => {
  for (const iban of ['nl91 abna 0417 1643 00', ...PASTED_IBANS]) {
    const details = buildBank({ iban, bic: 'abnanl2a' });
    expect(details).toMatchObject({ iban: 'NL91ABNA0417164300', bic: 'ABNANL2A', email: null });
    expect(Object.values(details)).not.toContain(undefined);
  }
});
