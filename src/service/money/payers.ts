import { z } from 'zod';
import type { Logger } from '../../base/log';
import type { Customer, EncryptedCustomer } from '../../domain/creation';
import { toEnv } from '../../domain/environment';
import {
  type DataKey,
  DecryptionError,
  decryptJwe,
  type Encrypted,
  type Encrypter,
  encryptJwe,
  findKid,
  importDataKey,
  newDataKey,
} from '../../encryption/encrypter';
import type { Stores } from '../../store';
import {
  type AccountDocument,
  type AccountStore,
  type PayerKey,
  type PayerKeys,
  payerKeyOwner,
} from '../../store/accounts';
import type { KeyOwner } from '../../store/keys';

const nullable = z.string().nullable();
const Names = z.object({ email: nullable, first_name: nullable, last_name: nullable });

const NO_NAMES = { email: null, first_name: null, last_name: null };

const KEYS_MAX = 10_000;

export interface PayerDeps {
  accounts: Pick<AccountStore, 'getCached' | 'refresh' | 'storePayerKey'>;
  encrypter: Encrypter;
  log: Pick<Logger, 'error'>;
}

export type Payers = ReturnType<typeof createPayers>;

export type PaymentWithPayer = KeyOwner & { _id: string; customer: EncryptedCustomer };

/**
 * Encrypts names and e-mail addresses with a data key for each account and environment. The
 * merchant's reference stays plain text.
 * @see docs/operations.md#personal-data
 */
export function createPayers(deps: PayerDeps) {
  const { read, encryptNames } = createPayerCipher(deps.encrypter);
  return {
    /** @throws KeyRingError, DecryptionError; Error when there is no such account */
    encrypt: async (owner: KeyOwner, payment_id: string, customer: Customer) => {
      const { reference, ...names } = customer;
      if (Object.values(names).every((name) => name === null)) return noPayer(reference);
      const { account_id, livemode } = owner;
      const env = toEnv(livemode);
      let keys = (await deps.accounts.getCached(account_id))?.payer_keys?.[env];
      if (keys === undefined) {
        const newKey = await newPayerKey(deps.encrypter, owner);
        keys = (await deps.accounts.storePayerKey(account_id, env, newKey))?.payer_keys?.[env];
      }
      if (keys === undefined) throw new Error(`There is no account ${account_id}.`);
      const ciphertext = await encryptNames({ ...owner, _id: payment_id }, names, keys);
      return { reference, ciphertext };
    },
    /** Returns nulls when the payer is absent or redacted, or no key decrypts it. */
    decrypt: async (payment: PaymentWithPayer): Promise<Customer> => {
      try {
        const { account_id, livemode, customer } = payment;
        const pick = (account: AccountDocument | null) => account?.payer_keys?.[toEnv(livemode)];
        let keys = pick(await deps.accounts.getCached(account_id));
        const isMissing =
          customer.ciphertext !== null && findKey(keys, customer.ciphertext) === undefined;
        // A cached account may lack the key of another process.
        if (isMissing) keys = pick(await deps.accounts.refresh(account_id));
        return await read(payment, keys);
      } catch (err) {
        if (!(err instanceof DecryptionError)) throw err;
        // One missing key must not make a whole list fail.
        deps.log.error({ payment_id: payment._id, err }, 'payer not decrypted');
        return { ...NO_NAMES, reference: payment.customer.reference };
      }
    },
  };
}

export type PayerCipher = ReturnType<typeof createPayerCipher>;

export function createPayerCipher(encrypter: Encrypter) {
  const dataKeys = new Map<Encrypted, Promise<DataKey>>();

  const decryptDataKey = async (ciphertext: Encrypted, owner: KeyOwner): Promise<DataKey> => {
    const cachedKey = dataKeys.get(ciphertext);
    if (cachedKey !== undefined) return await cachedKey;
    const key = encrypter.decrypt(ciphertext, payerKeyOwner(owner)).then(importDataKey);
    const [oldest] = dataKeys.keys();
    if (dataKeys.size >= KEYS_MAX && oldest !== undefined) dataKeys.delete(oldest);
    dataKeys.set(ciphertext, key);
    try {
      return await key;
    } catch (error) {
      dataKeys.delete(ciphertext);
      throw error;
    }
  };

  return {
    /** @throws DecryptionError when none of the keys decrypts it */
    read: async (payment: PaymentWithPayer, keys: PayerKeys | undefined): Promise<Customer> => {
      const { reference, ciphertext } = payment.customer;
      if (ciphertext === null) return { ...NO_NAMES, reference };
      const key = findKey(keys, ciphertext);
      if (key === undefined) throw new DecryptionError();
      const dataKey = await decryptDataKey(key.ciphertext, payment);
      const text = await decryptJwe(ciphertext, dataKey, {
        alg: 'dir',
        sub: getPayerOwner(payment),
      });
      return { ...Names.parse(JSON.parse(text)), reference };
    },
    /** @throws DecryptionError when the key file cannot decrypt the data key */
    encryptNames: async (
      payment: KeyOwner & { _id: string },
      names: Omit<Customer, 'reference'>,
      { id: kid, ciphertext }: PayerKey,
    ) => {
      const dataKey = await decryptDataKey(ciphertext, payment);
      const header = { alg: 'dir', sub: getPayerOwner(payment), kid };
      return await encryptJwe(JSON.stringify(names), dataKey, header);
    },
  };
}

export async function newPayerKey(encrypter: Encrypter, owner: KeyOwner): Promise<PayerKey> {
  const { id, text } = newDataKey();
  const ciphertext = await encrypter.encrypt(text, payerKeyOwner(owner));
  return { id, ciphertext, kid: encrypter.getKid(ciphertext) };
}

export function noPayer(reference: string | null): EncryptedCustomer {
  return { reference, ciphertext: null };
}

function getPayerOwner({ _id }: { _id: string }): string {
  return `payment/${_id}`;
}

export function isCurrent({ id }: PayerKey, ciphertext: string): boolean {
  return findKid(ciphertext) === id;
}

function findKey(keys: PayerKeys | undefined, ciphertext: string): PayerKey | undefined {
  if (keys === undefined) return undefined;
  return [keys, ...(keys.earlier ?? [])].find((key) => isCurrent(key, ciphertext));
}

/** `isWritten` is false for a request whose payment is not written yet. */
export interface StoredPayer extends PaymentWithPayer {
  isWritten: boolean;
}

const BATCH = 500;

/**
 * Reads requests first: one that is written meanwhile is then read as a payment.
 * @param after position of the payments; '' for all
 */
export async function* readPayers(
  stores: Pick<Stores, 'idempotency' | 'payments'>,
  owner: KeyOwner,
  after = '',
): AsyncGenerator<StoredPayer[]> {
  for (let id = ''; ; ) {
    const rows = await stores.idempotency.listPayers(owner, id, BATCH);
    yield rows.flatMap(({ resource_id: _id, customer }) =>
      customer === undefined ? [] : [{ ...owner, _id, customer, isWritten: false }],
    );
    const last = rows.at(-1);
    if (last === undefined) break;
    id = last._id;
  }
  for (let position = after; ; ) {
    const rows = await stores.payments.listPayers(owner, { after: position }, BATCH);
    yield rows.map(({ _id, customer }) => ({ ...owner, _id, customer, isWritten: true }));
    const last = rows.at(-1);
    if (last === undefined) return;
    position = last.position;
  }
}
