import { isIban } from '../../src/domain/iban';
import type { RecipientDetails } from '../../src/domain/payout/recipient';
import {
  detectScheme,
  faultsAt,
  getLast4,
  isBirthDate,
  isCardNumber,
  recipientDetails,
  recipientFacts,
} from '../../src/domain/payout/recipient-check';

const CARD = {
  type: 'card',
  first_name: 'Ada',
  last_name: 'Lovelace',
  card_number: '4111111111111111',
  expiry_month: '02',
  expiry_year: '2028',
  date_of_birth: '1990-02-28',
} as const;
const card = (changes: Partial<RecipientDetails> = {}) => recipientDetails({ ...CARD, ...changes });
const bank = (changes: Partial<RecipientDetails>) =>
  recipientDetails({ type: 'bank_account', first_name: 'A', last_name: 'B', ...changes });

test.each([
  ['4111111111111111', true],
  ['4222222222222', true],
  ['4111111111111112', false],
  ['1411111111111111', false],
  ['00000000000', false],
  ['000000000000', true],
  ['0000000000000000000', true],
  ['00000000000000000000', false],
  ['4111 1111 1111 1111', false],
  ['４１１１１１１１１１１１１１１１', false],
])('the card number %s: %s', (number, right) => {
  expect(isCardNumber(number)).toBe(right);
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
])('the network of %s is %s', (number, scheme) => {
  expect(detectScheme(number)).toBe(scheme);
});

test.each([
  ['NL91ABNA0417164300', true],
  ['nl91 abna 0417 1643 00', true],
  ['NL92ABNA0417164300', false],
  ['NL91ABNA041716430', false],
  ['NL91-ABNA-0417-1643-00', false],
  ['ZZ91ABNA0417164300', false],
  ['GB29NWBK60161331926819', true],
  ['', false],
  ['   ', false],
])('the IBAN %s: %s', (iban, right) => {
  expect(isIban(iban)).toBe(right);
});

test.each([
  ['1900-01-01', true],
  ['1899-12-31', false],
  ['2000-02-29', true],
  ['1900-02-29', false],
  ['2023-02-30', false],
  ['2023-13-01', false],
  ['2023-1-1', false],
  ['2023-01-01T00:00:00Z', false],
  ['', false],
])('the date of birth %s: %s', (date, right) => {
  expect(isBirthDate(date)).toBe(right);
});

test('a card is valid through the last millisecond of its month, in UTC', () => {
  const fields = (now: string) => faultsAt(card(), new Date(now)).map(({ field }) => field);
  expect(fields('2028-02-29T23:59:59.999Z')).toEqual([]);
  expect(fields('2028-03-01T00:00:00.000Z')).toEqual(['expiry_month', 'expiry_year']);
  expect(fields('2027-12-31T00:00:00.000Z')).toEqual([]);
  expect(fields('2029-01-01T00:00:00.000Z')).toEqual(['expiry_month', 'expiry_year']);
});

test('a birth is in the past', () => {
  const fields = (now: string) => faultsAt(card(), new Date(now)).map(({ field }) => field);
  expect(fields('1990-02-28T23:59:59.999Z')).toEqual(['date_of_birth']);
  expect(fields('1990-03-01T00:00:00.000Z')).toEqual([]);
});

test('of a card, only what checks a rail stays in clear', () => {
  const facts = recipientFacts(card({ address_line1: 'Street 1', postal_code: '1' }));
  expect(facts).toEqual({
    type: 'card',
    scheme: 'visa',
    has: ['card_number', 'date_of_birth', 'address_line1', 'postal_code'],
    card_expires: '2028-02',
    iban_in_sepa: null,
  });
});

test.each([
  ['NL91 abna 0417 1643 00', true, '4300'],
  ['CH9300762011623852957', true, '2957'],
  ['RS35260005601001611379', true, '1379'],
  ['TR330006100519786457841326', false, '1326'],
])('the account %s is in the SEPA area: %s', (iban, iban_in_sepa, last4) => {
  const details = bank({ iban });
  expect(recipientFacts(details)).toEqual({
    type: 'bank_account',
    scheme: null,
    has: ['iban'],
    card_expires: null,
    iban_in_sepa,
  });
  expect(getLast4(details)).toBe(last4);
});

test('an account of both kinds is known by its IBAN; one without, by its number', () => {
  const uk = { sort_code: '601613', account_number: '31926819' };
  expect(getLast4(bank(uk))).toBe('6819');
  expect(getLast4(bank({ ...uk, iban: 'NL91ABNA0417164300' }))).toBe('4300');
  expect(recipientFacts(bank(uk)).iban_in_sepa).toBeNull();
});

test('what was left out is null, and an IBAN and a BIC are kept in one form', () => {
  const kept = bank({ iban: 'nl91 abna 0417 1643 00', bic: 'abnanl2a' });
  expect(kept).toMatchObject({ iban: 'NL91ABNA0417164300', bic: 'ABNANL2A', email: null });
  expect(Object.values(kept)).not.toContain(undefined);
});
