import { RawJson } from '../../src/base/json';
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

const card = (changes: Partial<RecipientFacts> = {}): RecipientFacts => ({
  type: 'card',
  scheme: 'visa',
  has: ['card_number', 'date_of_birth', ...ADDRESS],
  card_expires: '2026-11',
  iban_in_sepa: null,
  ...changes,
});
const bank = (changes: Partial<RecipientFacts> = {}): RecipientFacts => ({
  type: 'bank_account',
  scheme: null,
  has: ['iban', ...ADDRESS, 'sort_code', 'account_number'],
  card_expires: null,
  iban_in_sepa: true,
  ...changes,
});
const faults = (
  method: string,
  currency: string,
  recipient: RecipientFacts,
  {
    available = ALL,
    at = AT,
    reference = null,
  }: { available?: ReadonlySet<string>; at?: Date; reference?: string | null } = {},
) => {
  const fault = railFault({ method, currency, recipient, reference }, available, at);
  if (fault === undefined) return [];
  return [fault.code, ...(fault.details ?? []).map(({ code, field }) => `${code} ${field}`)];
};

describe('the rules of rails', () => {
  test.each([
    ['card_payout', 'EUR', card()],
    ['card_payout', 'JPY', card({ scheme: 'amex' })],
    ['sepa_credit_transfer', 'EUR', bank()],
    ['sepa_instant', 'EUR', bank({ has: ['iban', ...ADDRESS] })],
    ['faster_payments', 'GBP', bank({ has: ['sort_code', 'account_number'], iban_in_sepa: null })],
    ['faster_payments', 'GBP', bank({ iban_in_sepa: false })],
  ])('%s takes %s to a recipient that has what it asks for', (method, currency, recipient) => {
    expect(faults(method, currency, recipient)).toEqual([]);
  });

  test.each(['cash', 'toString', '', 'ideal'])('%j is no rail', (method) => {
    expect(faults(method, 'EUR', card())).toEqual([
      'rail_requirements_not_met',
      'method_not_found method',
    ]);
  });

  test('a rail that the account cannot use is named beside every other fault', () => {
    const available = new Set(['faster_payments']);
    expect(faults('sepa_instant', 'EUR', bank(), { available })).toEqual([
      'rail_requirements_not_met',
      'method_not_enabled method',
    ]);
    expect(faults('sepa_instant', 'GBP', bank({ has: ['city'] }), { available })).toEqual([
      'rail_requirements_not_met',
      'method_not_enabled method',
      'currency_not_supported currency',
      'field_required iban',
      'field_required address_line1',
      'field_required postal_code',
    ]);
    expect(faults('sepa_instant', 'EUR', card(), { available })).toEqual([
      'rail_requirements_not_met',
      'method_not_enabled method',
    ]);
  });

  test.each([
    ['card_payout', bank()],
    ['sepa_credit_transfer', card()],
    ['sepa_instant', card()],
    ['faster_payments', card()],
  ])('%s refuses a recipient of the other kind', (method, recipient) => {
    expect(faults(method, 'EUR', recipient)).toEqual(['recipient_type_mismatch']);
  });

  test.each([
    ['sepa_credit_transfer', 'GBP'],
    ['sepa_instant', 'USD'],
    ['faster_payments', 'EUR'],
  ])('%s refuses %s', (method, currency) => {
    expect(faults(method, currency, bank())).toEqual([
      'rail_requirements_not_met',
      'currency_not_supported currency',
    ]);
  });

  test.each([
    ['card_payout', 'EUR', card({ has: [] }), ['card_number', 'date_of_birth', ...ADDRESS]],
    ['sepa_instant', 'EUR', bank({ has: [], iban_in_sepa: null }), ['iban', ...ADDRESS]],
    ['faster_payments', 'GBP', bank({ has: ['iban'] }), ['sort_code', 'account_number']],
    ['faster_payments', 'GBP', bank({ has: ['sort_code'] }), ['account_number']],
  ])('%s names every field of the recipient that is missing', (method, currency, to, missing) => {
    expect(faults(method, currency, to)).toEqual([
      'rail_requirements_not_met',
      ...missing.map((field) => `field_required ${field}`),
    ]);
  });

  test('a card is good to the last millisecond of its month, and not after', () => {
    const expired = ['rail_requirements_not_met', 'card_expired expiry_year'];
    expect(faults('card_payout', 'EUR', card(), { at: AT })).toEqual([]);
    const at = new Date(AT.getTime() + 1);
    expect(faults('card_payout', 'EUR', card(), { at })).toEqual(expired);
    expect(faults('card_payout', 'EUR', card({ card_expires: '2025-12' }))).toEqual(expired);
    expect(faults('card_payout', 'EUR', card({ card_expires: '2027-01' }))).toEqual([]);
  });

  test('a card of another network, and an account outside SEPA, are refused', () => {
    expect(faults('card_payout', 'EUR', card({ scheme: null }))).toEqual([
      'rail_requirements_not_met',
      'scheme_not_supported scheme',
    ]);
    for (const method of ['sepa_credit_transfer', 'sepa_instant']) {
      expect(faults(method, 'EUR', bank({ iban_in_sepa: false }))).toEqual([
        'rail_requirements_not_met',
        'iban_not_in_sepa iban',
      ]);
    }
  });

  test('all faults are named at once', () => {
    const recipient = card({ scheme: null, card_expires: '2020-01', has: ['card_number', 'city'] });
    expect(faults('card_payout', 'EUR', recipient)).toEqual([
      'rail_requirements_not_met',
      'field_required date_of_birth',
      'field_required address_line1',
      'field_required postal_code',
      'card_expired expiry_year',
      'scheme_not_supported scheme',
    ]);
  });
});

describe('the balance account of a payout', () => {
  test.each([
    ['none', undefined],
    ['null', null],
    ['metadata that is null', new RawJson('null')],
    ['an empty object', new RawJson('{}')],
    ['the name left out', new RawJson('{"order": {"balance_account": "marketing"}}')],
    ['a name that is null', new RawJson('{"balance_account": null}')],
    ['main itself', new RawJson('{"balance_account": "main"}')],
  ])('is main for %s', (_, metadata) => {
    expect(readBalanceAccount(metadata)).toEqual({ name: 'main' });
  });

  test.each(['marketing', 'Payroll_2026-11', '0'])('is %s where it is named', (name) => {
    const metadata = new RawJson(`{"x": 1.10, "balance_\\u0061ccount": ${JSON.stringify(name)}}`);
    expect(readBalanceAccount(metadata)).toEqual({ name });
  });

  test.each(['1', '1.5', 'true', '[]', '{}', '["main"]', '{"$ne": null}'])(
    'cannot be %s',
    (value) => {
      expect(readBalanceAccount(new RawJson(`{"balance_account": ${value}}`))).toEqual({
        fault: {
          code: 'invalid_request',
          message: 'metadata.balance_account: must be a string',
          details: [
            { code: 'invalid', field: 'metadata.balance_account', message: 'must be a string' },
          ],
        },
      });
    },
  );

  test.each(['', 'a.b', '$inc', '-x', 'a b', 'é', 'x'.repeat(65), '__proto__', 'a\\u0000'])(
    'is not found under the name "%s", which no balance account can have',
    (name) => {
      const metadata = new RawJson(`{"balance_account": "${name}"}`);
      expect(readBalanceAccount(metadata)).toMatchObject({
        fault: { code: 'balance_account_not_found' },
      });
    },
  );
});

describe('what the balance bears', () => {
  const rows = [
    { balance_account: 'main', currency: 'EUR', available: 1_000 },
    { balance_account: 'marketing', currency: 'EUR', available: 0 },
    { balance_account: 'marketing', currency: 'GBP', available: 500 },
  ];
  const draw = { balance_account: 'main', currency: 'EUR', amount: 900, fee: 100 };

  test('is amount and fee to the last minor unit', () => {
    expect(payoutBalanceFault(rows, draw)).toBeUndefined();
    expect(payoutBalanceFault(rows, { ...draw, amount: 901 })).toEqual({
      code: 'insufficient_balance',
      message: 'The balance has €10.00; €10.01 is needed.',
    });
    expect(payoutBalanceFault(rows, { ...draw, fee: 101 })?.code).toBe('insufficient_balance');
  });

  test('counts by account and currency', () => {
    const other = { ...draw, balance_account: 'marketing' };
    expect(payoutBalanceFault(rows, other)?.code).toBe('insufficient_balance');
    expect(
      payoutBalanceFault(rows, { ...other, currency: 'GBP', amount: 500, fee: 0 }),
    ).toBeUndefined();
    expect(payoutBalanceFault(rows, { ...other, currency: 'USD' })?.code).toBe(
      'insufficient_balance',
    );
    expect(payoutBalanceFault(rows, { ...draw, currency: 'JPY' })?.message).toContain('¥1,000');
  });

  test('is nothing of an account that was never credited; main always is one', () => {
    const unknown = { ...draw, balance_account: 'Marketing' };
    expect(payoutBalanceFault(rows, unknown)?.code).toBe('balance_account_not_found');
    expect(payoutBalanceFault([], draw)?.code).toBe('insufficient_balance');
  });
});

test.each([
  ['a card', card(), ['card_payout']],
  ['an expired card', card({ card_expires: '2020-01' }), ['card_payout']],
  ['a card without an address', card({ has: ['card_number', 'date_of_birth'] }), []],
  [
    'an account with all numbers',
    bank(),
    ['sepa_credit_transfer', 'sepa_instant', 'faster_payments'],
  ],
  ['an IBAN outside the SEPA area', bank({ has: ['iban', ...ADDRESS], iban_in_sepa: false }), []],
  ['a sort code', bank({ has: ['sort_code', 'account_number'] }), ['faster_payments']],
])('the rails that can ever pay %s', (_, recipient, rails) => {
  expect(findRails(recipient)).toEqual(rails);
});

test('text that no SEPA file carries is refused for the rail of files alone, by its field', () => {
  const recipient = bank({ sepa_faults: [{ field: 'city', code: 'too_long' }] });
  const reference = 'Rechnung über 10 €';
  expect(faults('sepa_credit_transfer', 'EUR', recipient, { reference })).toEqual([
    'rail_requirements_not_met',
    'too_long city',
    'characters_not_supported reference',
  ]);
  expect(faults('sepa_instant', 'EUR', recipient, { reference })).toEqual([]);
});
