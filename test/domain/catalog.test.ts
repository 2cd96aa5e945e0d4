import { COUNTRIES } from '../../src/domain/countries';
import { CURRENCIES, isCurrency } from '../../src/domain/money/money';
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

const IDEAL = { method: 'ideal', currency: 'EUR' };
const PLN = { method: 'przelewy24', currency: 'PLN', email: 'a@b.pl' };
const MULTIBANCO = { method: 'multibanco', currency: 'EUR', country: 'PT' };
const NOWHERE = { currency: 'ZZZ', country: 'ZZ' };

function findProblems(request: MethodRequest, enabled: ReadonlySet<string> = ALL): string[] {
  return checkMethodRequirements(request, enabled).map(({ code, field }) => `${code} ${field}`);
}

describe('the catalog of payment methods', () => {
  test('lists the methods in the order of docs/api.md#methods', () => {
    expect(PAYMENT_METHOD_IDS).toEqual(Object.keys(REFUNDS));
    const others = ['toString', '__proto__', 'constructor', 'IDEAL', ''];
    expect(others.filter(isPaymentMethodId)).toEqual([]);
  });

  test('shows exactly the fields of docs/api.md#methods', () => {
    expect(catalogEntry('ideal')).toEqual({
      ...{ method: 'ideal', display_name: 'iDEAL', currencies: ['EUR'], countries: ['NL'] },
      ...{ supports_recurring: false, requires_redirect: true, async_settlement: false },
      ...{ required_fields: [], chargebacks: false, notes: null },
      refunds: { kind: 'standard', withinDays: 365 },
    });
    const named = { method: 'przelewy24', display_name: 'Przelewy24' };
    expect(availableEntry('przelewy24')).toEqual({ ...named, currencies: ['EUR', 'PLN'] });
  });

  test.each(PAYMENT_METHOD_IDS)('has the refunds, places and window of %s', (id) => {
    const entry = catalogEntry(id);
    expect(Object.keys(entry).sort()).toEqual(Object.keys(catalogEntry('ideal')).sort());
    expect([entry.method, entry.refunds]).toEqual([id, REFUNDS[id]]);
    const { currencies, countries } = entry;
    expect(currencies.filter((code) => !isCurrency(code))).toEqual([]);
    expect(countries.filter((code) => !COUNTRIES.includes(code))).toEqual([]);
    expect([...currencies]).toEqual([...new Set(currencies)].sort());
    expect([...countries]).toEqual([...new Set(countries)].sort());
    expect(Math.min(currencies.length, countries.length)).toBeGreaterThan(0);
    if (['visa', 'mastercard', 'amex'].includes(id)) {
      expect([currencies, countries]).toEqual([CURRENCIES, COUNTRIES]);
    }
    // A cash-machine reference is valid for three days, all else for half an hour.
    const seconds = id === 'multibanco' ? 259_200 : 1_800;
    expect(methodRules(id).expires_in_seconds).toBe(seconds);
  });
});

describe('the requirements of a method', () => {
  const NONE = ['method_not_found method'];

  test.each<[string, MethodRequest, string[]]>([
    ['are met without a country', { method: 'ideal', currency: 'EUR' }, []],
    ['are met with its country', { ...IDEAL, country: 'NL', email: null }, []],
    ['are met with an e-mail address', { ...MULTIBANCO, email: 'a@b.pt' }, []],
    ['are met by its second', { method: 'paysafecard', currency: 'CHF', country: 'LI' }, []],
    ['are met anywhere', { method: 'amex', currency: 'KWD', country: 'AQ' }, []],
    ['name the currency', { ...IDEAL, currency: 'USD' }, ['currency_not_supported currency']],
    ['name an optional country', { ...IDEAL, country: 'BE' }, ['country_not_supported country']],
    ['name a missing country', { ...PLN, country: null }, ['country_required country']],
    ['name a missing address', { ...MULTIBANCO, email: null }, ['email_required customer.email']],
    ['name an unknown method alone', { method: 'sofort', ...NOWHERE }, NONE],
    ['name an inherited property alone', { method: 'toString', ...NOWHERE }, NONE],
    ['name the prototype alone', { method: '__proto__', ...NOWHERE }, NONE],
    ['name an empty method alone', { method: '', ...NOWHERE }, NONE],
  ])('%s', (_, request, problems) => expect(findProblems(request)).toEqual(problems));

  test('name every offending field at once', () => {
    const request = { method: 'przelewy24', currency: 'JPY', country: 'DE' };
    expect(findProblems(request, new Set(['ideal']))).toEqual([
      'method_not_enabled method',
      'currency_not_supported currency',
      'country_not_supported country',
      'email_required customer.email',
    ]);
  });

  test('say in words what would be accepted', () => {
    const request = { method: 'przelewy24', currency: 'USD', country: 'DE', email: 'a@b.pl' };
    expect(checkMethodRequirements(request, ALL).map(({ message }) => message)).toEqual([
      'Przelewy24 accepts only EUR, PLN.',
      'Przelewy24 is available only in PL.',
    ]);
  });
});
