import { z } from 'zod';
import type { Logger } from '../base/log';
import type { Customer, EncryptedCustomer } from '../domain/creation';
import { toEnv } from '../domain/environment';
import { type DataKey, importDataKey, newDataKey } from '../encryption/data-key';
import {
  DecryptionError,
  decryptJwe,
  type Encrypted,
  type Encrypter,
  encryptJwe,
} from '../encryption/encrypter';
import { type AccountStore, payerKeyOwner } from '../store/accounts';
import type { KeyOwner } from '../store/keys';

const nullable = z.string().nullable();
const Names = z.object({ email: nullable, first_name: nullable, last_name: nullable });

const KEYS_MAX = 10_000;

export interface PayerDeps {
  accounts: Pick<AccountStore, 'getCached' | 'storePayerKey'>;
  encrypter: Encrypter;
  log: Pick<Logger, 'error'>;
}

export type Payers = ReturnType<typeof createPayers>;

type PaymentWithPayer = KeyOwner & { _id: string; customer: EncryptedCustomer };

/**
 * Encrypts payers' names and e-mail addresses with one data key for each account and environment,
 * which the key file encrypts. The merchant's reference stays plain text.
 * @see docs/operations.md#personal-data
 */
export function createPayers(deps: PayerDeps) {
  const dataKeys = new Map<Encrypted, Promise<DataKey>>();

  /** @throws DecryptionError when no key decrypts it */
  const decryptDataKey = async (ciphertext: Encrypted, owner: KeyOwner): Promise<DataKey> => {
    const cachedKey = dataKeys.get(ciphertext);
    if (cachedKey !== undefined) return await cachedKey;
    const key = deps.encrypter.decrypt(ciphertext, payerKeyOwner(owner)).then(importDataKey);
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
    /** @throws KeyRingError, DecryptionError; Error when there is no such account */
    encrypt: async (owner: KeyOwner, payment_id: string, customer: Customer) => {
      const { reference, ...names } = customer;
      if (Object.values(names).every((name) => name === null)) return noPayer(reference);
      const key = await decryptDataKey(await getDataKey(deps, owner), owner);
      const ciphertext = await encryptJwe(JSON.stringify(names), key, {
        alg: 'dir',
        sub: getPayerOwner(payment_id),
      });
      return { reference, sealed: ciphertext };
    },
    /** Returns nulls when the payer is absent or redacted, or when no key decrypts it. */
    decrypt: async ({
      _id,
      account_id,
      livemode,
      customer,
    }: PaymentWithPayer): Promise<Customer> => {
      const { reference, sealed } = customer;
      const none = { email: null, first_name: null, last_name: null, reference };
      if (sealed === null) return none;
      const owner = { account_id, livemode };
      try {
        const key = await decryptDataKey(await getDataKey(deps, owner), owner);
        const names = Names.parse(
          JSON.parse(await decryptJwe(sealed, key, { alg: 'dir', sub: getPayerOwner(_id) })),
        );
        return { ...names, reference };
      } catch (err) {
        if (!(err instanceof DecryptionError)) throw err;
        // One missing key must not make a whole list fail.
        deps.log.error({ payment_id: _id, err }, 'payer not decrypted');
        return none;
      }
    },
  };
}

export function noPayer(reference: string | null): EncryptedCustomer {
  return { reference, sealed: null };
}

function getPayerOwner(payment_id: string): string {
  return `payment/${payment_id}`;
}

async function getDataKey({ accounts, encrypter }: PayerDeps, owner: KeyOwner): Promise<Encrypted> {
  const { account_id, livemode } = owner;
  const environment = toEnv(livemode);
  const existing = (await accounts.getCached(account_id))?.payer_keys?.[environment];
  if (existing !== undefined) return existing.sealed;
  const ciphertext = await encrypter.encrypt(newDataKey(), payerKeyOwner(owner));
  const newKey = { sealed: ciphertext, kid: encrypter.getKid(ciphertext) };
  const account = await accounts.storePayerKey(account_id, environment, newKey);
  const storedKey = account?.payer_keys?.[environment];
  if (storedKey === undefined) throw new Error(`There is no account ${account_id}.`);
  return storedKey.sealed;
}
