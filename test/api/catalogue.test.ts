import { PAYMENT_METHOD_IDS } from '../../src/domain/payment/catalog';
import { type Client, call, idealPayment } from '../support/http';
import { RAIL_ENTRIES } from '../support/promises';
import { useAccount, useService } from '../support/service';
import { expectRefusal } from './refusal';

const service = useService();
const shop = useAccount(service);

const create = (body: object, as: Client = shop) => as.post('/v1/payments', body);
const readDetails = ({ body }: { body: { error: { details: object[] } } }) => body.error.details;

/** Only what docs/api.md#create-a-payment requires. */
const bare = (changes: object) => {
  const { country, reference, ...rest } = idealPayment();
  return { ...rest, ...changes };
};

test('the catalogue has every method, for every account and environment', async () => {
  const few = await service.account({ methods: ['ideal'], livemode: true });
  const all = await shop.get('/v1/payment-methods');
  const methods = all.body.data.map(({ method }: { method: string }) => method);
  expect([all.status, methods.toSorted()]).toEqual([200, PAYMENT_METHOD_IDS.toSorted()]);
  expect((await few.get('/v1/payment-methods')).text).toBe(all.text);
});

test('available methods are those that the account has enabled', async () => {
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
  expect(readDetails(await create(idealPayment(), few))).toEqual([
    { code: 'method_not_enabled', field: 'method', message: expect.stringContaining('iDEAL') },
  ]);
  await service.stores.accounts.enableMethod(few.account_id, 'ideal');
  expect(await available()).toHaveLength(1);
  expect((await create(idealPayment(), few)).status).toBe(201);
  await service.stores.accounts.disableMethod(few.account_id, 'ideal');
  expect(await available()).toEqual([]);
  expectRefusal(await create(idealPayment(), few), 'method_requirements_not_met');
});

test('no method is available live without a live connector, and no payment can be created', async () => {
  const { account_id } = await service.account();
  const live = await service.withKey({ account_id }, true);
  expect((await live.get('/v1/payment-methods/available')).body).toEqual({
    object: 'list',
    data: [],
  });
  const refused = await create(idealPayment(), live);
  expectRefusal(refused, 'method_requirements_not_met', ['method']);
  expect(readDetails(refused)).toMatchObject([{ code: 'method_not_enabled' }]);
});

test('every method creates a payment from the fields that its entry requires', async () => {
  const { data } = (await shop.get('/v1/payment-methods')).body;
  for (const { method, currencies, countries, required_fields } of data) {
    const required = {
      ...(required_fields.includes('country') ? { country: countries[0] } : {}),
      ...(required_fields.includes('customer.email') ? { customer: { email: 'a@b.nl' } } : {}),
    };
    const currency = currencies.at(-1);
    const { status, body } = await create(bare({ method, currency, ...required }));
    expect([method, status]).toEqual([method, 201]);
    expect(body).toMatchObject({ method, currency, country: required.country ?? null });
  }
});

test('a payment that its method does not allow is refused, naming every field', async () => {
  const changes = { method: 'przelewy24', currency: 'USD', country: 'DE' };
  const refused = await create(idealPayment(changes));
  expectRefusal(refused, 'method_requirements_not_met');
  expect(readDetails(refused)).toMatchObject([
    { code: 'currency_not_supported', field: 'currency' },
    { code: 'country_not_supported', field: 'country' },
    { code: 'email_required', field: 'customer.email' },
  ]);
  const unknown = await create(idealPayment({ method: 'toString' }));
  expect(readDetails(unknown)).toMatchObject([{ code: 'method_not_found', field: 'method' }]);
});

describe('the rails of an account', () => {
  const rails = async (as: Client = shop) => {
    const { status, body } = await as.get('/v1/payout-methods');
    expect([status, Object.keys(body), body.object]).toEqual([200, ['object', 'data'], 'list']);
    return body.data;
  };

  test('are the four of docs/api.md#rails', async () => {
    expect(await rails()).toEqual(RAIL_ENTRIES);
  });

  test('are those that the account has enabled, at once', async () => {
    const own = await service.account();
    const { account_id } = own;
    const methods = async () => (await rails(own)).map(({ method }: { method: string }) => method);
    await service.stores.accounts.disableRail(account_id, 'sepa_instant');
    await service.stores.accounts.disableRail(account_id, 'card_payout');
    expect(await methods()).toEqual(['sepa_credit_transfer', 'faster_payments']);
    await service.stores.accounts.enableRail(account_id, 'sepa_instant');
    expect(await methods()).toEqual(['sepa_credit_transfer', 'sepa_instant', 'faster_payments']);
  });

  test('are none live without a live connector', async () => {
    const { account_id } = await service.account();
    expect(await rails(await service.withKey({ account_id }, true))).toEqual([]);
  });
});

test('methods and rails need a key but no scope, and have no parameters', async () => {
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
