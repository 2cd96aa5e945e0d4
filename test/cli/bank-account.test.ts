import { commandsIn, useProvisioning } from './cli';

const service = useProvisioning();
const IBAN = 'DE89370400440532013000';

function options(change: Record<string, string> = {}) {
  const named = { connector: 'sandbox', env: 'sandbox', iban: IBAN, currency: 'EUR', ...change };
  return Object.entries(named).flatMap(([name, value]) => [`--${name}`, value]);
}

function add(change: Record<string, string> = {}) {
  return service.json('bank-account', 'add', ...options(change));
}

test('a bank account is added once, and listed', async () => {
  const added = await add({ iban: 'de89 3704 0044 0532 0130 00' });
  expect(added).toEqual({
    bank_account_id: expect.stringMatching(/^ba_[0-9a-f-]{36}$/),
    ...{ connector: 'sandbox', env: 'sandbox', iban: IBAN, currency: 'EUR' },
    ...{ created_at: expect.any(String), closing: null },
  });
  expect(await Promise.all([add(), add()])).toEqual([added, added]);
  const dollars = await add({ currency: 'USD' });
  expect(await service.json('bank-account', 'list')).toEqual({ data: [added, dollars] });
  const lines = await service.db.collection('audit_log').find({}).toArray();
  expect(lines.filter(({ act }) => act === 'bank_account.added')).toHaveLength(2);
});

test('a connector on live must be in LIVE_CONNECTORS', async () => {
  const { json } = commandsIn({ ...service.env, LIVE_CONNECTORS: 'acme=ideal' });
  const live = { connector: 'acme', env: 'live' };
  const added = await json('bank-account', 'add', ...options(live));
  expect(added).toMatchObject(live);
});

test('a connector of SANDBOX_CONNECTORS is accepted in the sandbox, and refused on live', async () => {
  const env = { ...service.env, SANDBOX_CONNECTORS: 'test-acme=ideal' };
  const { json, refusal } = commandsIn(env);
  const change = { connector: 'test-acme', iban: 'NL91ABNA0417164300' };
  expect(await json('bank-account', 'add', ...options(change))).toMatchObject(change);
  const refused = await refusal('bank-account', 'add', ...options({ ...change, env: 'live' }));
  expect(refused).toEqual({
    code: 'connector_unknown',
    message: 'test-acme is a test system, which holds nothing on live.',
  });
});

test.each([
  [{ iban: 'DE88370400440532013000' }, 'iban_invalid', /check digits/],
  [{ iban: '' }, 'iban_invalid', /check digits/],
  [{ connector: 'acme', env: 'live' }, 'connector_unknown', /no connector acme/],
  [{ env: 'live' }, 'connector_unknown', /nothing on live/],
  [{ connector: 'a.b' }, 'connector_name_invalid', /"a.b"/],
  [{ currency: 'ETH' }, 'invalid_usage', /ISO 4217/],
])('%j is refused with a message', async (change, code, message) => {
  const refusal = await service.refusal('bank-account', 'add', ...options(change));
  expect(refusal).toEqual({ code, message: expect.stringMatching(message) });
});
