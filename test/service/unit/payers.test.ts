import { randomBytes } from 'node:crypto';
import { createEncrypter, DecryptionError } from '../../../src/encryption/encrypter';
import { createPayers, type PayerDeps } from '../../../src/service/payers';
import type { AccountDocument } from '../../../src/store/accounts';

const JAN = { email: 'jan@example.com', first_name: 'Jan', last_name: null, reference: 'c-1' };
const NONE = { email: null, first_name: null, last_name: null };

/** Accounts as a store holds them; `account` reads one. */
function world() {
  const kept = new Map<string, AccountDocument>();
  const account = (_id: string): AccountDocument => {
    const dashboard = { email: `${_id}@example.com` };
    const made = { _id, name: '', crypto: false, enabled_methods: [], dashboard, created_at: '' };
    const found = kept.get(_id) ?? made;
    kept.set(_id, found);
    return found;
  };
  const accounts: PayerDeps['accounts'] = {
    getCached: async (id) => account(id),
    storePayerKey: async (id, env, key) => {
      const found = account(id);
      kept.set(id, { ...found, payer_keys: { [env]: key, ...found.payer_keys } });
      return account(id);
    },
  };
  const error = jest.fn();
  const sealer = createEncrypter({ current: 'a', keys: { a: randomBytes(32) } });
  const payers = (ring = sealer) => createPayers({ accounts, encrypter: ring, log: { error } });
  return { payers, account, error };
}

const SHOP = { account_id: 'acct_1', livemode: false };

test('a payer is sealed for its payment, and opens in any process', async () => {
  const { payers, account } = world();
  const [one, another] = [payers(), payers()];
  const made = ['1', '2'].map((id) => one.encrypt(SHOP, id, JAN));
  const [first, second] = await Promise.all([...made, another.encrypt(SHOP, '3', JAN)]);
  expect(first).toEqual({ reference: 'c-1', sealed: expect.stringMatching(/^ey[\w-]+\.\./) });
  expect(Object.keys(account('acct_1').payer_keys ?? {})).toEqual(['sandbox']);
  if (first === undefined || second === undefined) throw new Error('Nothing was sealed.');
  expect(await another.decrypt({ ...SHOP, _id: '1', customer: first })).toEqual(JAN);
  expect(await another.decrypt({ ...SHOP, _id: '2', customer: second })).toEqual(JAN);
});

test('nothing is encrypted where no name is given', async () => {
  const { payers, account } = world();
  const nobody = await payers().encrypt(SHOP, '1', { ...NONE, reference: 'c-2' });
  expect(nobody).toEqual({ reference: 'c-2', sealed: null });
  expect(account('acct_1').payer_keys).toBeUndefined();
  const shown = await payers().decrypt({ ...SHOP, _id: '1', customer: nobody });
  expect(shown).toEqual({ ...NONE, reference: 'c-2' });
});

test('a payer that was moved, or whose key is gone, is shown as blank and told of', async () => {
  const { payers, error } = world();
  const customer = await payers().encrypt(SHOP, '1', JAN);
  const blank = { ...NONE, reference: 'c-1' };
  expect(await payers().decrypt({ ...SHOP, _id: '2', customer })).toEqual(blank);
  expect(await payers().decrypt({ ...SHOP, livemode: true, _id: '1', customer })).toEqual(blank);
  const other = createEncrypter({ current: 'b', keys: { b: randomBytes(32) } });
  expect(await payers(other).decrypt({ ...SHOP, _id: '1', customer })).toEqual(blank);
  expect(error).toHaveBeenCalledTimes(3);
  expect(error).toHaveBeenLastCalledWith(
    { payment_id: '1', err: new DecryptionError() },
    'payer not decrypted',
  );
});
