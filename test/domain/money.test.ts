import fc from 'fast-check';
import { COUNTRIES } from '../../src/domain/countries';
import {
  amountInJson,
  CURRENCIES,
  formatMoney,
  isCurrency,
  MINOR_UNIT_DIGITS,
  minorUnitDigits,
} from '../../src/domain/money/money';

/** Codes that Intl knows, and that ISO 4217 has withdrawn or gives no minor unit. */
const NOT_MONEY = ['ANG', 'BGN', 'CUC', 'HRK', 'SLL', 'XDR', 'XSU', 'ZWL'];

/** Funds codes and the newest ones, which Intl leaves out. */
const NOT_IN_INTL = ['BOV', 'CHE', 'CHW', 'CLF', 'COU', 'MXV', 'USN', 'UYI', 'UYW', 'VED', 'XAD'];

const listByDigits = (digits: number) =>
  CURRENCIES.filter((code) => MINOR_UNIT_DIGITS.get(code) === digits).join(' ');

describe('the currency table', () => {
  test('is ISO 4217 as in Intl, except for the known differences', () => {
    const known = new Set(Intl.supportedValuesOf('currency'));
    expect(CURRENCIES).toHaveLength(165);
    const missing = CURRENCIES.filter((code) => !known.has(code) && !NOT_IN_INTL.includes(code));
    const others = [...known].filter((code) => !isCurrency(code) && !NOT_MONEY.includes(code));
    expect([missing, others]).toEqual([[], []]);
  });

  test('has each code once, in order, the recent ones too, and no withdrawn ones', () => {
    expect(CURRENCIES).toEqual([...new Set(CURRENCIES)].sort());
    expect(CURRENCIES.filter((code) => !/^[A-Z]{3}$/.test(code))).toEqual([]);
    const recent = ['EUR', 'SLE', 'VES', 'XCG', 'ZWG', 'MRU', 'STN'];
    const others = ['XTS', 'XXX', 'XAU', 'XAG', 'XBA', 'XYZ', 'eur', 'EU', '', '__proto__'];
    expect([...recent, ...NOT_MONEY, ...others].filter(isCurrency)).toEqual(recent);
  });

  test('has two minor-unit digits for every currency but these', () => {
    expect(listByDigits(0)).toBe(
      'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF',
    );
    expect(listByDigits(3)).toBe('BHD IQD JOD KWD LYD OMR TND');
    expect(listByDigits(4)).toBe('CLF UYW');
    expect(minorUnitDigits('EUR')).toBe(2);
    expect(() => minorUnitDigits('XYZ')).toThrow(RangeError);
  });
});

test('the country table is ISO 3166-1: 249 codes with a name in Intl, each once, in order', () => {
  const names = new Intl.DisplayNames('en', { type: 'region', fallback: 'none' });
  expect(COUNTRIES).toHaveLength(249);
  expect(COUNTRIES).toEqual([...new Set(COUNTRIES)].sort());
  expect(COUNTRIES.filter((code) => names.of(code) === undefined)).toEqual([]);
  // Intl names these, too.
  const unassigned = ['AC', 'CP', 'CQ', 'DG', 'EA', 'EU', 'EZ', 'IC', 'QO', 'TA', 'UN', 'XA', 'XB'];
  const others = [...unassigned, 'XK', 'UK', 'AN', 'SU', 'ZZ', 'nl', 'NLD', ''];
  expect(others.filter((code) => COUNTRIES.includes(code))).toEqual([]);
});

describe('a formatted amount', () => {
  test.each([
    [1050, 'EUR', '€10.50'],
    [-1, 'GBP', '-£0.01'],
    [1050, 'JPY', '¥1,050'],
    [1050, 'KWD', 'KWD\u00a01.050'],
    [99_999_999_999, 'CLF', 'CLF\u00a09,999,999.9999'],
    [2n ** 53n + 1n, 'EUR', '€90,071,992,547,409.93'],
    [-(2n ** 62n), 'JPY', '-¥4,611,686,018,427,387,904'],
    [5n, 'KWD', 'KWD\u00a00.005'],
  ])('of %d minor units of %s is %s', (amount, currency, text) => {
    expect(formatMoney(amount, currency)).toBe(text);
  });

  test('follows the locale, and is refused for an unknown currency and for what is no amount', () => {
    expect(formatMoney(1234567, 'EUR', 'de')).toBe('12.345,67\u00a0€');
    expect(() => formatMoney(1, 'XXX')).toThrow(RangeError);
    for (const amount of [10.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
      expect(() => formatMoney(amount, 'EUR')).toThrow(RangeError);
    }
  });

  test('keeps every digit, in every currency', () => {
    const currency = fc.constantFrom(...CURRENCIES);
    fc.assert(
      fc.property(fc.maxSafeInteger(), currency, (amount, code) => {
        const text = formatMoney(amount, code);
        // Symbols such as `Cg.` end in a dot of their own.
        const digits = text.replace(/^\D*/, '').replace(/\D/g, '');
        expect(Number(digits)).toBe(Math.abs(amount));
        expect(text.startsWith('-')).toBe(amount < 0);
        const decimals = /\.(\d+)$/.exec(text)?.[1]?.length ?? 0;
        expect(decimals).toBe(minorUnitDigits(code));
      }),
    );
  });

  test('is a number in JSON as long as that is exact, and a text beyond', () => {
    const exact = [5, -5, Number.MAX_SAFE_INTEGER];
    const amounts = [5, -5n, 2n ** 53n - 1n, 2n ** 53n].map(amountInJson);
    expect(amounts).toEqual([...exact, '9007199254740992']);
  });
});
