import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Stripe from 'stripe';
import { z } from 'zod';
import { API_VERSION, encodeForm } from '../../../../connectors/stripe/api';
import {
  findMethod,
  findRefusal,
  listBlockedBrands,
  METHOD_IDS,
  STRIPE_CURRENCIES,
} from '../../../../connectors/stripe/methods';
import { assertKeyMode, settings } from '../../../../connectors/stripe/settings';
import { MINOR_UNIT_DIGITS } from '../../../../src/domain/money/money';
import { methodRules } from '../../../../src/domain/payment/catalog';

const payment = { method: 'visa', amount: 1_000, currency: 'EUR' };

test('every method is named as Stripe does, and a card blocks all brands but its own', () => {
  const names = METHOD_IDS.map((id) => {
    const method = findMethod(id);
    return [id, method?.type, method && listBlockedBrands(method)];
  });
  const [visa, mastercard, amex] = ['visa', 'mastercard', 'american_express'];
  const others = 'discover_global_network';
  expect(names).toEqual([
    ['visa', 'card', [mastercard, amex, others]],
    ['mastercard', 'card', [visa, amex, others]],
    ['amex', 'card', [visa, mastercard, others]],
    ['ideal', 'ideal', []],
    ['bancontact', 'bancontact', []],
    ['przelewy24', 'p24', []],
    ['multibanco', 'multibanco', []],
    ['mbway', 'mb_way', []],
  ]);
});

test('currencies are those of the catalog, with the minor units of ISO 4217', () => {
  for (const id of METHOD_IDS) {
    const { currencies = STRIPE_CURRENCIES } = findMethod(id) ?? {};
    expect(methodRules(id).currencies).toEqual(expect.arrayContaining([...currencies]));
  }
  const digits = STRIPE_CURRENCIES.map((code) => [code, MINOR_UNIT_DIGITS.get(code)]);
  expect(digits.filter(([, number]) => number !== 2)).toEqual([['JPY', 0]]);
});

test.each([
  ['a method of another bank', { method: 'paysafecard' }, 'not_supported'],
  ['a currency that iDEAL lacks', { method: 'ideal', currency: 'PLN' }, 'currency_not_supported'],
  ['a currency that the account lacks', { currency: 'USD' }, 'currency_not_supported'],
  ['a currency without a published minimum', { currency: 'KWD' }, 'currency_not_supported'],
  ['an amount below the minimum', { amount: 49 }, 'amount_too_small'],
  ['an amount below that of JPY', { amount: 49, currency: 'JPY' }, 'amount_too_small'],
  ['an amount of nine digits', { amount: 100_000_000 }, 'amount_too_large'],
])('a payment with %s is declined', (_what, change, code) => {
  expect(findRefusal({ ...payment, ...change }, ['EUR', 'PLN', 'JPY', 'KWD'])?.code).toBe(code);
});

test.each([
  ...[{}, { amount: 50 }, { amount: 99_999_999 }, { amount: 50, currency: 'JPY' }],
  { method: 'przelewy24', currency: 'PLN', amount: 200 },
])('a payment with %j is accepted', (change) => {
  expect(findRefusal({ ...payment, ...change }, ['EUR', 'PLN', 'JPY'])).toBeUndefined();
});

test('parameters are nested by brackets, and undefined ones are left out', () => {
  const form = encodeForm({ a: 1, b: { c: ['d&', 'e'], f: undefined }, g: [{ h: 'i' }] });
  expect(decodeURIComponent(form)).toBe('a=1&b[c][0]=d&&b[c][1]=e&g[0][h]=i');
  expect(form).toContain('d%26');
});

test('requests pin the version of the library that verifies webhooks', () => {
  expect(API_VERSION).toBe(Stripe.API_VERSION);
});

test.each([
  ['sk_live_x', 'sandbox'],
  ['rk_live_x', 'sandbox'],
  ['sk_test_x', 'live'],
  ['pk_live_x', 'live'],
  ['', 'sandbox'],
] as const)('the key %j starts no connector of %s', (key, environment) => {
  expect(() => assertKeyMode(key, environment)).toThrow('STRIPE_SECRET_KEY_FILE');
});

test('the key of the mode starts the connector', () => {
  assertKeyMode('sk_test_x', 'sandbox');
  assertKeyMode('rk_live_x', 'live');
});

test('settings name currencies of the table alone, and secrets that nobody can guess', () => {
  const folder = mkdtempSync(join(tmpdir(), 'stripe-settings-'));
  const file = join(folder, 'secret');
  const read = (secret: string, currencies?: string) => {
    writeFileSync(file, secret);
    const files = { STRIPE_SECRET_KEY_FILE: file, STRIPE_WEBHOOK_SECRET_FILE: file };
    return z.object(settings).safeParse({ ...files, STRIPE_CURRENCIES: currencies }).data;
  };
  const secret = `whsec_${'a'.repeat(32)}`;
  try {
    expect(read(secret)?.STRIPE_CURRENCIES).toEqual(['EUR']);
    expect(read(`${secret}\n${secret}\n`, 'EUR|PLN')?.STRIPE_CURRENCIES).toEqual(['EUR', 'PLN']);
    expect(read(secret, 'EUR|KWD')).toBeUndefined();
    for (const weak of ['', 'whsec_', `${secret}\nwhsec_1`]) expect(read(weak)).toBeUndefined();
  } finally {
    rmSync(folder, { recursive: true });
  }
});
