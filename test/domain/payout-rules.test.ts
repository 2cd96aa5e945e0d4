import { RawJson } from '../../src/base/json';
import { parseFeeName, payoutFee } from '../../src/domain/payout/payout';
import { RAIL_IDS, type RecipientField } from '../../src/domain/payout/rails';
import type { RecipientFacts } from '../../src/domain/payout/recipient';
import {
  findRails,
  payoutBalanceFault,
  railFault,
  readBalanceAccount,
} from '../../src/domain/payout/rules';

const ALL = new Set<string>(RAIL_IDS);
const AT = new Date('2026-11-30T23:59:59.999Z');
const ADDRESS: RecipientField[] = ['address_line1', 'city', 'postal_code'];

const buildCard = (changes: Partial<RecipientFacts> = {}): RecipientFacts => ({
  ...{ type: 'card', scheme: 'visa', card_expires: '2026-11', iban_in_sepa: null },
  ...{ has: ['card_number', 'date_of_birth', ...ADDRESS], ...changes },
});
const buildBank = (changes: Partial<RecipientFacts> = {}): RecipientFacts => ({
  ...{ type: 'bank_account', scheme: null, card_expires: null, iban_in_sepa: true },
  ...{ has: ['iban', ...ADDRESS, 'sort_code', 'account_number'], ...changes },
});
const card = buildCard();
const bank = buildBank();
const UK: Partial<RecipientFacts> = { has: ['sort_code', 'account_number'] };

/** Faults by code and field, or the code of one that has no fields. */
function findFaults(
  method: string,
  currency: string,
  recipient: RecipientFacts,
  { available = ALL, at = AT, reference = null as string | null } = {},
): string[] {
  const fault = railFault({ method, currency, recipient, reference }, available, at);
  if (fault === undefined) return [];
  if (fault.details === undefined) return [fault.code];
  expect(fault.code).toBe('rail_requirements_not_met');
  return fault.details.map(({ code, field }) => `${code} ${field}`);
}

describe('a rail', () => {
  const elsewhere = buildBank({ iban_in_sepa: false });
  const NONE = ['method_not_found method'];
  const MISMATCH = ['recipient_type_mismatch'];
  const lacks = (...fields: string[]) => fields.map((field) => `field_required ${field}`);

  test.each<[string, string, RecipientFacts, string[]]>([
    ['card_payout', 'EUR', card, []],
    ['card_payout', 'JPY', buildCard({ scheme: 'amex' }), []],
    ['card_payout', 'EUR', buildCard({ card_expires: '2027-01' }), []],
    ['sepa_credit_transfer', 'EUR', bank, []],
    ['sepa_instant', 'EUR', buildBank({ has: ['iban', ...ADDRESS] }), []],
    ['faster_payments', 'GBP', buildBank({ ...UK, iban_in_sepa: null }), []],
    ['faster_payments', 'GBP', elsewhere, []],
    ['cash', 'EUR', card, NONE],
    ['toString', 'EUR', card, NONE],
    ['', 'EUR', card, NONE],
    ['ideal', 'EUR', card, NONE],
    ['card_payout', 'EUR', bank, MISMATCH],
    ['sepa_credit_transfer', 'EUR', card, MISMATCH],
    ['sepa_instant', 'EUR', card, MISMATCH],
    ['faster_payments', 'EUR', card, MISMATCH],
    ['sepa_credit_transfer', 'GBP', bank, ['currency_not_supported currency']],
    ['sepa_instant', 'USD', bank, ['currency_not_supported currency']],
    ['faster_payments', 'EUR', bank, ['currency_not_supported currency']],
    ['card_payout', 'EUR', buildCard({ card_expires: '2025-12' }), ['card_expired expiry_year']],
    ['card_payout', 'EUR', buildCard({ scheme: null }), ['scheme_not_supported scheme']],
    ['sepa_instant', 'EUR', elsewhere, ['iban_not_in_sepa iban']],
    ['sepa_credit_transfer', 'EUR', elsewhere, ['iban_not_in_sepa iban']],
    [
      'card_payout',
      'EUR',
      buildCard({ has: [] }),
      lacks('card_number', 'date_of_birth', ...ADDRESS),
    ],
    ['sepa_instant', 'EUR', buildBank({ has: [], iban_in_sepa: null }), lacks('iban', ...ADDRESS)],
    ['faster_payments', 'GBP', buildBank({ has: ['iban'] }), lacks('sort_code', 'account_number')],
    ['faster_payments', 'GBP', buildBank({ has: ['sort_code'] }), lacks('account_number')],
  ])('%s in %s pays who meets its requirements, and names what is not met: %#', (...row) => {
    const [method, currency, recipient, faults] = row;
    expect(findFaults(method, currency, recipient)).toEqual(faults);
  });

  test('that the account cannot use is named next to every other fault', () => {
    const available = new Set(['faster_payments']);
    const disabled = 'method_not_enabled method';
    expect(findFaults('sepa_instant', 'EUR', card, { available })).toEqual([disabled]);
    const recipient = buildBank({ has: ['city', 'iban', 'postal_code'] });
    const faults = [disabled, 'currency_not_supported currency', 'field_required address_line1'];
    expect(findFaults('sepa_instant', 'GBP', recipient, { available })).toEqual(faults);
  });

  test('pays to a card through the last millisecond of its month, and names all its faults at once', () => {
    expect(findFaults('card_payout', 'EUR', card, { at: AT })).toEqual([]);
    const at = new Date(AT.getTime() + 1);
    expect(findFaults('card_payout', 'EUR', card, { at })).toEqual(['card_expired expiry_year']);
    const has: RecipientField[] = ['card_number', 'city'];
    const recipient = buildCard({ scheme: null, card_expires: '2020-01', has });
    expect(findFaults('card_payout', 'EUR', recipient)).toEqual([
      ...['date_of_birth', 'address_line1', 'postal_code'].map((name) => `field_required ${name}`),
      ...['card_expired expiry_year', 'scheme_not_supported scheme'],
    ]);
  });

  test('of files alone refuses text that no SEPA file carries, by its field', () => {
    const recipient = buildBank({ sepa_faults: [{ field: 'city', code: 'too_long' }] });
    const reference = 'Rechnung über 10 €';
    expect(findFaults('sepa_credit_transfer', 'EUR', recipient, { reference })).toEqual([
      'too_long city',
      'characters_not_supported reference',
    ]);
    expect(findFaults('sepa_instant', 'EUR', recipient, { reference })).toEqual([]);
  });

  test.each<[string, RecipientFacts, string[]]>([
    ['a card', card, ['card_payout']],
    ['an expired card', buildCard({ card_expires: '2020-01' }), ['card_payout']],
    ['a card without an address', buildCard({ has: ['card_number', 'date_of_birth'] }), []],
    ['an account', bank, ['sepa_credit_transfer', 'sepa_instant', 'faster_payments']],
    ['an IBAN elsewhere', buildBank({ has: ['iban', ...ADDRESS], iban_in_sepa: false }), []],
    ['a sort code', buildBank(UK), ['faster_payments']],
  ])('can ever pay %s', (_, recipient, rails) => {
    expect(findRails(recipient)).toEqual(rails);
  });
});

describe('the balance account of a payout', () => {
  const NOT_FOUND = 'balance_account_not_found';

  test.each([
    ['nothing', undefined],
    ['null', null],
    ['metadata that is null', new RawJson('null')],
    ['an empty object', new RawJson('{}')],
    ['a name of another object', new RawJson('{"order": {"balance_account": "marketing"}}')],
    ['a name that is null', new RawJson('{"balance_account": null}')],
    ['main itself', new RawJson('{"balance_account": "main"}')],
  ])('is main for %s', (_, metadata) => {
    expect(readBalanceAccount(metadata)).toEqual({ name: 'main' });
  });

  test.each(['marketing', 'Payroll_2026-11', '0'])('is %s where that is named', (name) => {
    const metadata = new RawJson(`{"x": 1.10, "balance_\\u0061ccount": ${JSON.stringify(name)}}`);
    expect(readBalanceAccount(metadata)).toEqual({ name });
  });

  test.each(['1', '1.5', 'true', '[]', '{}', '["main"]', '{"$ne": null}'])(
    'must be a string, not %s',
    (value) => {
      const [field, message] = ['metadata.balance_account', 'must be a string'];
      const details = [{ code: 'invalid', field, message }];
      expect(readBalanceAccount(new RawJson(`{"balance_account": ${value}}`))).toEqual({
        fault: { code: 'invalid_request', message: `${field}: ${message}`, details },
      });
    },
  );

  test.each(['', 'a.b', '$inc', '-x', 'a b', 'é', 'x'.repeat(65), '__proto__', 'a\\u0000'])(
    'is not found under the name "%s", which no balance account can have',
    (name) => {
      const metadata = new RawJson(`{"balance_account": "${name}"}`);
      expect(readBalanceAccount(metadata)).toMatchObject({ fault: { code: NOT_FOUND } });
    },
  );

  const rows = [
    { balance_account: 'main', currency: 'EUR', available: 1_000 },
    { balance_account: 'marketing', currency: 'EUR', available: 0 },
    { balance_account: 'marketing', currency: 'GBP', available: 500 },
  ];
  const draw = { balance_account: 'main', currency: 'EUR', amount: 900, fee: 100 };
  const marketing = { ...draw, balance_account: 'marketing' };

  test.each([
    ['the amount and the fee', draw, undefined],
    ['more than the amount', { ...draw, amount: 901 }, 'insufficient_balance'],
    ['more than the fee', { ...draw, fee: 101 }, 'insufficient_balance'],
    ['nothing of another account', marketing, 'insufficient_balance'],
    ['the same currency', { ...marketing, currency: 'GBP', amount: 500, fee: 0 }, undefined],
    ['no other currency', { ...marketing, currency: 'USD' }, 'insufficient_balance'],
    ['nothing before it was funded', { ...draw, balance_account: 'Marketing' }, NOT_FOUND],
  ])('pays %s', (_, each, code) => {
    expect(payoutBalanceFault(rows, each)?.code).toBe(code);
  });

  test('says what it has and what is needed, in units of the currency, also before it is funded', () => {
    expect(payoutBalanceFault(rows, { ...draw, amount: 901 })).toEqual({
      code: 'insufficient_balance',
      message: 'The balance has €10.00; €10.01 is needed.',
    });
    expect(payoutBalanceFault(rows, { ...draw, currency: 'JPY' })?.message).toContain('¥1,000');
    expect(payoutBalanceFault([], draw)?.code).toBe('insufficient_balance');
  });
});

describe('the fee of a payout', () => {
  test.each([
    ['card_payout', 'EUR', 50],
    ['card_payout', 'JPY', 80],
    ['card_payout', 'KWD', 0],
    ['sepa_instant', 'EUR', 0],
  ] as const)('by %s in %s is %i', (rail, currency, fee) => {
    const fees = { card_payout: 50, 'card_payout:JPY': 80, 'card_payout:KWD': 0 } as const;
    expect(payoutFee(fees, rail, currency)).toBe(fee);
  });

  test('can be named by a rail, alone or with one of its currencies', () => {
    const names = ['card_payout', 'card_payout:JPY', 'sepa_instant:EUR'];
    const invalid = ['sepa_instant:JPY', 'card_payout:', 'card_payout:jpy', 'card_payout:JPY:EUR'];
    const parsed = [...names, ...invalid, 'ideal', ''].map((name) => parseFeeName(name));
    expect(parsed.filter((name) => name !== undefined)).toEqual(names);
  });
});
