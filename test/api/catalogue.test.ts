import { PAYMENT_METHOD_IDS } from '../../src/domain/payment/catalog';
import { type Client, call, idealPayment } from '../support/http';
import { RAIL_ENTRIES } from '../support/promises';
import { useAccount, useService } from '../support/service';
import { expectRefusal } from './refusal';

const METHODS = '/v1/payment-methods';
const AVAILABLE = '/v1/payment-methods/available';
const RAILS = '/v1/payout-methods';

const service = useService();
const shop = useAccount(service);

const create = (body: object, as: Client = shop) => as.post('/v1/payments', body);
const listMethods = async (path: string, as: Client) => {
  const { data }: { data: { method: string }[] } = (await as.get(path)).body;
  return data.map(({ method }) => method);
};

test('the catalogue has every method, for every account and environment', async () => {
  const few = await service.account({ methods: ['ideal'], livemode: true });
  const all = await shop.get(METHODS);
  expect((await listMethods(METHODS, shop)).toSorted()).toEqual(PAYMENT_METHOD_IDS.toSorted());
  expect((await few.get(METHODS)).text).toBe(all.text);
});

test('available methods are those that the account has enabled, at once', async () => {
  const few = await service.account({ methods: ['visa', 'no-such-method'] });
  const { accounts } = service.stores;
  expect((await create(idealPayment(), few)).body.error.details).toEqual([
    { code: 'method_not_enabled', field: 'method', message: expect.stringContaining('iDEAL') },
  ]);
  await accounts.enableMethod(few.account_id, 'ideal');
  const { status, body } = await few.get(AVAILABLE);
  const ideal = { method: 'ideal', display_name: 'iDEAL', currencies: ['EUR'] };
  const currencies = expect.arrayContaining(['EUR', 'JPY']);
  const data = [ideal, { method: 'visa', display_name: 'Visa', currencies }];
  expect([status, body]).toEqual([200, { object: 'list', data }]);
  expect((await create(idealPayment(), few)).status).toBe(201);
  await accounts.disableMethod(few.account_id, 'ideal');
  expect(await listMethods(AVAILABLE, few)).toEqual(['visa']);
  expectRefusal(await create(idealPayment(), few), 'method_requirements_not_met');
});

test('rails are the four of docs/api.md#rails, as far as the account has enabled them', async () => {
  const own = await service.account();
  const { accounts } = service.stores;
  expect((await own.get(RAILS)).body).toEqual({ object: 'list', data: RAIL_ENTRIES });
  for (const rail of ['sepa_instant', 'card_payout'] as const) {
    await accounts.disableRail(own.account_id, rail);
  }
  expect(await listMethods(RAILS, own)).toEqual(['sepa_credit_transfer', 'faster_payments']);
  await accounts.enableRail(own.account_id, 'sepa_instant');
  const all = ['sepa_credit_transfer', 'sepa_instant', 'faster_payments'];
  expect(await listMethods(RAILS, own)).toEqual(all);
});

test('no method and no rail is available live without a live connector', async () => {
  const live = await service.withKey(shop, true);
  for (const path of [AVAILABLE, RAILS]) expect(await listMethods(path, live)).toEqual([]);
  const refused = await create(idealPayment(), live);
  expectRefusal(refused, 'method_requirements_not_met', ['method']);
  expect(refused.body.error.details).toMatchObject([{ code: 'method_not_enabled' }]);
});

test('every method creates a payment from the fields that its entry requires', async () => {
  const { data } = (await shop.get(METHODS)).body;
  const { country: _, reference, ...fields } = idealPayment();
  for (const { method, currencies, countries, required_fields } of data) {
    const required = {
      ...(required_fields.includes('country') ? { country: countries[0] } : {}),
      ...(required_fields.includes('customer.email') ? { customer: { email: 'a@b.nl' } } : {}),
    };
    const currency = currencies.at(-1);
    const { status, body } = await create({ ...fields, method, currency, ...required });
    expect([method, status]).toEqual([method, 201]);
    expect(body).toMatchObject({ method, currency, country: required.country ?? null });
  }
});

test.each([METHODS, AVAILABLE, RAILS])(
  '%s needs a key but no scope, and has no parameters',
  async (path) => {
    const narrow = await service.account({ scopes: ['refunds:read'] });
    expect((await narrow.get(path)).status).toBe(200);
    expectRefusal(await call(service.url, 'GET', path), 'api_key_missing');
    expectRefusal(await shop.get(`${path}?country=NL`), 'invalid_request', ['country']);
  },
);
