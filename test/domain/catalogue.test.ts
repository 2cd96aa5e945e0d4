import { COUNTRIES } from '../../src/domain/countries';
import { CURRENCIES, isCurrency } from '../../src/domain/currencies';
import {
  availableEntry,
  catalogEntry,
  isPaymentMethodId,
  methodRules,
  PAYMENT_METHOD_IDS,
} from '../../src/domain/payment/catalog';
import { checkMethodRequirements, type MethodRequest } from '../../src/domain/payment/rules';
import { REFUNDS } from '../support/promises';

const ALL = new Set<string>(PAYMENT_METHOD_IDS);

function problems(request: MethodRequest, enabled: ReadonlySet<string> = ALL): string[] {
  return checkMethodRequirements(request, enabled).map(({ code, field }) => `${code} ${field}`);
}

describe('the catalogue', () => {
  test('lists the nine methods', () => {
    expect(PAYMENT_METHOD_IDS).toEqual([
      'ideal',
      'bancontact',
      'mbway',
      'przelewy24',
      'visa',
      'mastercard',
      'amex',
      'multibanco',
      'paysafecard',
    ]);
  });

  test('shows exactly the fields of docs/api.md#methods, and none that stays inside', () => {
    expect(catalogEntry('ideal')).toEqual({
      method: 'ideal',
      display_name: 'iDEAL',
      currencies: ['EUR'],
      countries: ['NL'],
      refunds: { kind: 'standard', withinDays: 365 },
      supports_recurring: false,
      requires_redirect: true,
      async_settlement: false,
      required_fields: [],
      chargebacks: false,
      notes: null,
    });
    const fields = Object.keys(catalogEntry('ideal')).sort();
    for (const id of PAYMENT_METHOD_IDS) {
      expect(Object.keys(catalogEntry(id)).sort()).toEqual(fields);
      expect(catalogEntry(id).method).toBe(id);
    }
  });

  test('shows exactly the fields of docs/api.md#methods where it lists what is available', () => {
    expect(availableEntry('przelewy24')).toEqual({
      method: 'przelewy24',
      display_name: 'Przelewy24',
      currencies: ['EUR', 'PLN'],
    });
  });

  test.each(PAYMENT_METHOD_IDS)('refunds %s as merchants are promised', (id) => {
    expect(catalogEntry(id).refunds).toEqual(REFUNDS[id]);
  });

  test.each(PAYMENT_METHOD_IDS)('names real currencies and countries for %s, each once', (id) => {
    const { currencies, countries } = catalogEntry(id);
    expect(currencies.filter((code) => !isCurrency(code))).toEqual([]);
    expect(countries.filter((code) => !COUNTRIES.includes(code))).toEqual([]);
    expect([...currencies]).toEqual([...new Set(currencies)].sort());
    expect([...countries]).toEqual([...new Set(countries)].sort());
    expect(Math.min(currencies.length, countries.length)).toBeGreaterThan(0);
  });

  test('takes cards in every currency and country', () => {
    for (const id of ['visa', 'mastercard', 'amex'] as const) {
      expect(catalogEntry(id)).toMatchObject({ currencies: CURRENCIES, countries: COUNTRIES });
    }
  });

  test('lets a payment expire after 30 minutes, a cash-machine reference after 3 days', () => {
    for (const id of PAYMENT_METHOD_IDS) {
      const expected = id === 'multibanco' ? 259_200 : 1_800;
      expect(methodRules(id).expires_in_seconds).toBe(expected);
    }
  });

  test('has no method by the name of an inherited property', () => {
    expect(['toString', '__proto__', 'constructor', 'IDEAL', ''].filter(isPaymentMethodId)).toEqual(
      [],
    );
  });
});

describe('the requirements of a method', () => {
  test.each<[string, MethodRequest]>([
    ['without a country', { method: 'ideal', currency: 'EUR' }],
    ['with its country', { method: 'ideal', currency: 'EUR', country: 'NL', email: null }],
    [
      'with all it needs',
      { method: 'multibanco', currency: 'EUR', country: 'PT', email: 'a@b.pt' },
    ],
    ['in its second currency', { method: 'paysafecard', currency: 'CHF', country: 'LI' }],
    ['anywhere', { method: 'amex', currency: 'KWD', country: 'AQ' }],
  ])('are met %s', (_, request) => expect(problems(request)).toEqual([]));

  test.each<[string, MethodRequest, string[]]>([
    ['currency', { method: 'ideal', currency: 'USD' }, ['currency_not_supported currency']],
    [
      'optional country',
      { method: 'bancontact', currency: 'EUR', country: 'NL' },
      ['country_not_supported country'],
    ],
    [
      'missing country',
      { method: 'przelewy24', currency: 'PLN', country: null, email: 'a@b.pl' },
      ['country_required country'],
    ],
    [
      'missing e-mail address',
      { method: 'multibanco', currency: 'EUR', country: 'PT', email: null },
      ['email_required customer.email'],
    ],
  ])('name the %s', (_, request, expected) => expect(problems(request)).toEqual(expected));

  test('name every offending field at once', () => {
    const request = { method: 'przelewy24', currency: 'JPY', country: 'DE' };
    expect(problems(request, new Set(['ideal']))).toEqual([
      'method_not_enabled method',
      'currency_not_supported currency',
      'country_not_supported country',
      'email_required customer.email',
    ]);
  });

  test.each(['sofort', 'toString', '__proto__', ''])(
    'name only the method %j, unknown',
    (method) => {
      expect(problems({ method, currency: 'ZZZ', country: 'ZZ' })).toEqual([
        'method_not_found method',
      ]);
    },
  );

  test('are told in words, with what would be accepted', () => {
    const details = checkMethodRequirements(
      { method: 'przelewy24', currency: 'USD', country: 'DE', email: 'a@b.pl' },
      ALL,
    );
    expect(details.map(({ message }) => message)).toEqual([
      'Przelewy24 accepts only EUR, PLN.',
      'Przelewy24 is available only in PL.',
    ]);
  });
});
