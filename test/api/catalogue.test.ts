import { type Client, call, idealPayment } from '../support/http';
import { RAIL_ENTRIES, REFUNDS } from '../support/promises';
import { useAccount, useService } from '../support/service';
import { expectRefusal } from './refusal';

const service = useService();
const shop = useAccount(service);

const create = (body: object, as: Client = shop) => as.post('/v1/payments', body);
const detailsOf = ({ body }: { body: { error: { details: object[] } } }) => body.error.details;

/** Only what docs/api.md#create-a-payment requires. */
const bare = (changes: object) => {
  const { country, reference, ...rest } = idealPayment();
  return { ...rest, ...changes };
};

test('the catalogue has every method with exactly the fields of docs/api.md#methods', async () => {
  const { status, body } = await shop.get('/v1/payment-methods');
  expect(status).toBe(200);
  expect(Object.keys(body)).toEqual(['object', 'data']);
  expect(body.object).toBe('list');
  const methods = body.data.map(({ method }: { method: string }) => method).sort();
  expect(methods).toEqual([
    'amex',
    'bancontact',
    'ideal',
    'mastercard',
    'mbway',
    'multibanco',
    'paysafecard',
    'przelewy24',
    'visa',
  ]);
  for (const entry of body.data) {
    expect(Object.keys(entry).sort()).toEqual([
      'async_settlement',
      'chargebacks',
      'countries',
      'currencies',
      'display_name',
      'method',
      'notes',
      'refunds',
      'required_fields',
      'requires_redirect',
      'supports_recurring',
    ]);
    expect(Object.keys(entry.refunds)).toEqual(['kind', 'withinDays']);
    expect(entry.currencies.length).toBeGreaterThan(0);
    expect(entry.countries.length).toBeGreaterThan(0);
  }
});

test.each(Object.entries(REFUNDS))('%s refunds: %o', async (method, refunds) => {
  const { data } = (await shop.get('/v1/payment-methods')).body;
  const entry = data.find((each: { method: string }) => each.method === method);
  expect(entry.refunds).toEqual(refunds);
});

test('the catalogue is the same for every account and environment', async () => {
  const few = await service.account({ methods: ['ideal'], livemode: true });
  const all = await shop.get('/v1/payment-methods');
  expect((await few.get('/v1/payment-methods')).text).toBe(all.text);
});

test('available methods are those that the account has enabled, with the fields of docs/api.md#methods', async () => {
  const few = await service.account({ methods: ['visa', 'ideal', 'no-such-method'] });
  const { status, body } = await few.get('/v1/payment-methods/available');
  expect(status).toBe(200);
  expect(body).toEqual({
    object: 'list',
    data: [
      { method: 'ideal', display_name: 'iDEAL', currencies: ['EUR'] },
      { method: 'visa', display_name: 'Visa', currencies: expect.arrayContaining(['EUR', 'JPY']) },
    ],
  });
});

test('enabling and disabling a method takes effect at once', async () => {
  const few = await service.account({ methods: [] });
  const available = async () => (await few.get('/v1/payment-methods/available')).body.data;
  expect(await available()).toEqual([]);
  expect(detailsOf(await create(idealPayment(), few))).toEqual([
    { code: 'method_not_enabled', field: 'method', message: expect.stringContaining('iDEAL') },
  ]);
  await service.stores.accounts.enableMethod(few.account_id, 'ideal');
  expect(await available()).toHaveLength(1);
  expect((await create(idealPayment(), few)).status).toBe(201);
  await service.stores.accounts.disableMethod(few.account_id, 'ideal');
  expect(await available()).toEqual([]);
  expectRefusal(await create(idealPayment(), few), 'method_requirements_not_met');
});

test('where no connector serves live, nothing is available and nothing can be created', async () => {
  const { account_id } = await service.account();
  const live = await service.withKey({ account_id }, true);
  expect((await live.get('/v1/payment-methods/available')).body).toEqual({
    object: 'list',
    data: [],
  });
  const refused = await create(idealPayment(), live);
  expectRefusal(refused, 'method_requirements_not_met', ['method']);
  expect(detailsOf(refused)).toMatchObject([{ code: 'method_not_enabled' }]);
});

test('every available method creates a payment with what its entry asks for, and no more', async () => {
  const { data } = (await shop.get('/v1/payment-methods')).body;
  for (const { method, currencies, countries, required_fields } of data) {
    const asked = {
      ...(required_fields.includes('country') ? { country: countries[0] } : {}),
      ...(required_fields.includes('customer.email') ? { customer: { email: 'a@b.nl' } } : {}),
    };
    const currency = currencies.at(-1);
    const { status, body } = await create(bare({ method, currency, ...asked }));
    expect([method, status]).toEqual([method, 201]);
    expect(body).toMatchObject({ method, currency, country: asked.country ?? null });
  }
});

test.each([
  ['a currency it lacks', { currency: 'USD' }, ['currency_not_supported:currency']],
  ['a country it lacks', { country: 'BE' }, ['country_not_supported:country']],
  [
    'both',
    { currency: 'USD', country: 'BE' },
    ['country_not_supported:country', 'currency_not_supported:currency'],
  ],
  ['a method that is none', { method: 'cash' }, ['method_not_found:method']],
  ['the name of a method of objects', { method: 'toString' }, ['method_not_found:method']],
  [
    'neither country nor email where both are needed',
    { method: 'multibanco', country: null },
    ['country_required:country', 'email_required:customer.email'],
  ],
  [
    'a customer without email where it is needed',
    { method: 'przelewy24', country: 'PL', customer: { first_name: 'Jan', email: null } },
    ['email_required:customer.email'],
  ],
  [
    'three faults at once',
    { method: 'przelewy24', currency: 'USD', country: 'DE' },
    [
      'country_not_supported:country',
      'currency_not_supported:currency',
      'email_required:customer.email',
    ],
  ],
])('%s is method_requirements_not_met, naming every field at fault', async (_, change, faults) => {
  const refused = await create(idealPayment(change));
  expectRefusal(refused, 'method_requirements_not_met');
  expect(
    detailsOf(refused)
      .map((detail) =>
        'code' in detail && 'field' in detail ? `${detail.code}:${detail.field}` : '',
      )
      .sort(),
  ).toEqual(faults);
});

describe('the rails', () => {
  const rails = async (as: Client = shop) => {
    const { status, body } = await as.get('/v1/payout-methods');
    expect([status, Object.keys(body), body.object]).toEqual([200, ['object', 'data'], 'list']);
    return body.data;
  };

  test('are all four, with exactly the fields of docs/api.md#rails', async () => {
    expect(await rails()).toEqual(RAIL_ENTRIES);
  });

  test('are those that the account has enabled, from the moment it has', async () => {
    const own = await service.account();
    const { account_id } = own;
    const methods = async () => (await rails(own)).map(({ method }: { method: string }) => method);
    await service.stores.accounts.disableRail(account_id, 'sepa_instant');
    await service.stores.accounts.disableRail(account_id, 'card_payout');
    expect(await methods()).toEqual(['sepa_credit_transfer', 'faster_payments']);
    await service.stores.accounts.enableRail(account_id, 'sepa_instant');
    expect(await methods()).toEqual(['sepa_credit_transfer', 'sepa_instant', 'faster_payments']);
  });

  test('are none where no connector serves live', async () => {
    const { account_id } = await service.account();
    expect(await rails(await service.withKey({ account_id }, true))).toEqual([]);
  });
});

test('catalogue and rails need a key but no scope, and take no parameters', async () => {
  const narrow = await service.account({ scopes: ['refunds:read'] });
  for (const path of [
    '/v1/payment-methods',
    '/v1/payment-methods/available',
    '/v1/payout-methods',
  ]) {
    expect((await narrow.get(path)).status).toBe(200);
    expectRefusal(await call(service.url, 'GET', path), 'api_key_missing');
    expectRefusal(await shop.get(`${path}?country=NL`), 'invalid_request', ['country']);
  }
});
