import { randomBytes } from 'node:crypto';
import { createEncrypter, DecryptionError, findKid } from '../../../src/encryption/encrypter';
import { createPayers, newPayerKey, type PayerDeps } from '../../../src/service/money/payers';
import type { AccountDocument } from '../../../src/store/accounts';

const JAN = { email: 'jan@example.com', first_name: 'Jan', last_name: null, reference: 'c-1' };
const NONE = { email: null, first_name: null, last_name: null };

/** Opens accounts as a store has them; `account` reads one. */
function openWorld() {
  const stored = new Map<string, AccountDocument>();
  const cached = new Map<string, AccountDocument>();
  const account = (_id: string): AccountDocument => {
    const dashboard = { email: `${_id}@example.com` };
    const made = { _id, name: '', crypto: false, enabled_methods: [], dashboard, created_at: '' };
    const found = stored.get(_id) ?? made;
    stored.set(_id, found);
    return found;
  };
  const accounts: PayerDeps['accounts'] = {
    // As it was when this was last refreshed.
    getCached: async (id) => cached.get(id) ?? account(id),
    refresh: async (id) => {
      cached.set(id, account(id));
      return account(id);
    },
    storePayerKey: async (id, env, key) => {
      const found = account(id);
      stored.set(id, { ...found, payer_keys: { [env]: key, ...found.payer_keys } });
      return account(id);
    },
  };
  const error = jest.fn();
  const encrypter = createEncrypter({ current: 'a', keys: { a: randomBytes(32) } });
  const payers = (ring = encrypter) => createPayers({ accounts, encrypter: ring, log: { error } });
  /** Makes another data key the current one, which no process has read yet. */
  const replace = async (id: string) => {
    const { payer_keys = {} } = account(id);
    const before = payer_keys.sandbox;
    if (before === undefined) throw new Error('There is no key.');
    cached.set(id, account(id));
    const next = await newPayerKey(encrypter, { account_id: id, livemode: false });
    const earlier = [{ ...before, replaced_at: '' }];
    stored.set(id, { ...account(id), payer_keys: { sandbox: { ...next, earlier } } });
    return next.id;
  };
  return { payers, account, error, replace };
}

const header = JSON.stringify({ alg: 'dir', enc: 'A256GCM', kid: 'unknown', sub: 'payment/3' });
/** A payer that was encrypted with a key that no account has. */
const NAMED = `${Buffer.from(header).toString('base64url')}..AAAA.AAAA.AAAA`;
const SHOP = { account_id: 'acct_1', livemode: false };

test('a payer is encrypted for its payment, and any process decrypts it', async () => {
  const { payers, account } = openWorld();
  const [one, another] = [payers(), payers()];
  const made = ['1', '2'].map((id) => one.encrypt(SHOP, id, JAN));
  const [first, second] = await Promise.all([...made, another.encrypt(SHOP, '3', JAN)]);
  expect(first).toEqual({ reference: 'c-1', ciphertext: expect.stringMatching(/^ey[\w-]+\.\./) });
  expect(Object.keys(account('acct_1').payer_keys ?? {})).toEqual(['sandbox']);
  if (first === undefined || second === undefined) throw new Error('Nothing was encrypted.');
  expect(await another.decrypt({ ...SHOP, _id: '1', customer: first })).toEqual(JAN);
  expect(await another.decrypt({ ...SHOP, _id: '2', customer: second })).toEqual(JAN);
});

test('a replaced data key still decrypts its payers, and encrypts none once the account is read', async () => {
  const { payers, account, replace, error } = openWorld();
  const before = await payers().encrypt(SHOP, '1', JAN);
  const first = account('acct_1').payer_keys?.sandbox?.id;
  const next = await replace('acct_1');
  expect(findKid(before.ciphertext ?? '')).toBe(first);
  // From a cached account, as in the seconds after the change.
  const between = await payers().encrypt(SHOP, '2', JAN);
  expect(findKid(between.ciphertext ?? '')).toBe(first);
  expect(await payers().decrypt({ ...SHOP, _id: '1', customer: before })).toEqual(JAN);
  expect(error).not.toHaveBeenCalled();
  // The unknown name makes it read the account.
  await payers().decrypt({ ...SHOP, _id: '3', customer: { reference: null, ciphertext: NAMED } });
  const after = await payers().encrypt(SHOP, '4', JAN);
  expect(findKid(after.ciphertext ?? '')).toBe(next);
  for (const [_id, customer] of Object.entries({ 1: before, 2: between, 4: after })) {
    expect(await payers().decrypt({ ...SHOP, _id, customer })).toEqual(JAN);
  }
  expect(error).toHaveBeenCalledTimes(1);
});

test('a payer without a name is not encrypted', async () => {
  const { payers, account } = openWorld();
  const nobody = await payers().encrypt(SHOP, '1', { ...NONE, reference: 'c-2' });
  expect(nobody).toEqual({ reference: 'c-2', ciphertext: null });
  expect(account('acct_1').payer_keys).toBeUndefined();
  const shown = await payers().decrypt({ ...SHOP, _id: '1', customer: nobody });
  expect(shown).toEqual({ ...NONE, reference: 'c-2' });
});

test('a payer that was moved, or whose key is missing, is shown without a name and reported', async () => {
  const { payers, error } = openWorld();
  const customer = await payers().encrypt(SHOP, '1', JAN);
  const nameless = { ...NONE, reference: 'c-1' };
  expect(await payers().decrypt({ ...SHOP, _id: '2', customer })).toEqual(nameless);
  expect(await payers().decrypt({ ...SHOP, livemode: true, _id: '1', customer })).toEqual(nameless);
  const other = createEncrypter({ current: 'b', keys: { b: randomBytes(32) } });
  expect(await payers(other).decrypt({ ...SHOP, _id: '1', customer })).toEqual(nameless);
  expect(error).toHaveBeenCalledTimes(3);
  expect(error).toHaveBeenLastCalledWith(
    { payment_id: '1', err: new DecryptionError() },
    'payer not decrypted',
  );
});
