import { addBankAccount, type NewBankAccount } from '../../src/service/bank-accounts';
import { commandsIn, useProvisioning } from './cli';

const service = useProvisioning();
const IBAN = 'DE89370400440532013000';

const ROUTES = { liveConnectors: 'acme=ideal', sandboxConnectors: 'test-acme=ideal' };
const add = (change: Partial<NewBankAccount> = {}) => {
  const account = { connector: 'sandbox', livemode: false, iban: IBAN, currency: 'EUR' };
  return addBankAccount({ ...service.deps, ...ROUTES }, { ...account, ...change });
};

test('a bank account is added once, and listed', async () => {
  const { json } = commandsIn({ ...service.env, LIVE_CONNECTORS: ROUTES.liveConnectors });
  const where = ['--connector', 'sandbox', '--env', 'sandbox'];
  const iban = ['--iban', 'de89 3704 0044 0532 0130 00', '--currency', 'EUR'];
  const added = Object(await json('bank-account', 'add', ...where, ...iban));
  expect(added).toEqual({
    bank_account_id: expect.stringMatching(/^ba_[0-9a-f-]{36}$/),
    ...{ connector: 'sandbox', env: 'sandbox', iban: IBAN, currency: 'EUR' },
    ...{ created_at: expect.any(String), closing: null },
  });
  const again = { _id: added.bank_account_id };
  expect(await Promise.all([add(), add()])).toMatchObject([again, again]);
  const live = ['--connector', 'acme', '--env', 'live', '--iban', IBAN, '--currency', 'USD'];
  const dollars = await json('bank-account', 'add', ...live);
  expect(dollars).toMatchObject({ connector: 'acme', env: 'live', currency: 'USD' });
  expect(await json('bank-account', 'list')).toEqual({ data: [added, dollars] });
  const lines = await service.stores.auditLog.list({ act: 'bank_account.added', limit: 9 });
  expect(lines).toHaveLength(2);
});

test('a connector of SANDBOX_CONNECTORS is accepted in the sandbox', async () => {
  expect(await add({ connector: 'test-acme' })).toMatchObject({ connector: 'test-acme' });
});

test.each<[Partial<NewBankAccount>, string, RegExp]>([
  [{ iban: 'DE88370400440532013000' }, 'iban_invalid', /check digits/],
  [{ iban: '' }, 'iban_invalid', /check digits/],
  [{ connector: 'other', livemode: true }, 'connector_unknown', /no connector other/],
  [{ connector: 'test-acme', livemode: true }, 'connector_unknown', /a test system, which holds/],
  [{ livemode: true }, 'connector_unknown', /nothing on live/],
  [{ connector: 'a.b' }, 'connector_name_invalid', /"a.b"/],
])('%j is refused with a message', async (change, code, message) => {
  const refusal = { code, message: expect.stringMatching(message) };
  await expect(add(change)).rejects.toMatchObject(refusal);
});
