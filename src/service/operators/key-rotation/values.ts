import type { ObjectId } from 'mongodb';
import { ENVIRONMENTS, type Env, isLive } from '../../../domain/environment';
import type { Encrypted } from '../../../encryption/encrypter';
import type { Stores } from '../../../store';
import { type AccountDocument, type PayerKeys, payerKeyOwner } from '../../../store/accounts';
import { connectorKeyOwner } from '../../../store/connector-keys';
import { secretOwner } from '../../../store/endpoints';
import type { KeyOwner } from '../../../store/keys';
import { totpOwner } from '../../../store/users';

export type EncryptedStores = Pick<
  Stores,
  'accounts' | 'payments' | 'recipients' | 'endpoints' | 'idempotency' | 'users' | 'connectorKeys'
>;

export interface EncryptedValue {
  ciphertext: Encrypted;
  /** Bound to the ciphertext. */
  owner: string;
  /** Writes only if the value has not changed. @param kid key of `next` */
  replace: (next: Encrypted, kid: string) => Promise<{ modifiedCount: number }>;
}

const BATCH = 100;

async function* readAll<Id, T extends { _id: Id }>(
  readPage: (after: Id | undefined) => Promise<T[]>,
): AsyncGenerator<T> {
  let after: Id | undefined;
  for (;;) {
    const page = await readPage(after);
    yield* page;
    after = page.at(-1)?._id;
    if (after === undefined) return;
  }
}

async function* readEndpoints({ endpoints }: EncryptedStores) {
  const readPage = (after: ObjectId | undefined) => endpoints.page(BATCH, after);
  for await (const endpoint of readAll(readPage)) {
    yield endpoint.secrets.map(({ ciphertext }) => ({
      ciphertext,
      owner: secretOwner(endpoint),
      replace: (next: Encrypted) => endpoints.reencryptSecret(endpoint._id, ciphertext, next),
    }));
  }
}

async function* readUsers({ users }: EncryptedStores) {
  const readPage = (after = '') => users.withTotp(after, BATCH);
  for await (const { _id, totp, totp_offered } of readAll(readPage)) {
    const fields = { 'totp.ciphertext': totp?.ciphertext, totp_offered };
    yield (['totp.ciphertext', 'totp_offered'] as const).flatMap((field) => {
      const before = fields[field];
      if (!before) return [];
      const replace = (next: Encrypted) =>
        users.reencryptTotp(_id, field, { before, ciphertext: next });
      return [{ ciphertext: before, owner: totpOwner(_id), replace }];
    });
  }
}

async function* readConnectorKeys({ connectorKeys }: EncryptedStores) {
  const readPage = (after = '') => connectorKeys.page(after, BATCH);
  for await (const { _id, ciphertext } of readAll(readPage)) {
    const replace = (next: Encrypted) => connectorKeys.reencrypt(_id, ciphertext, next);
    yield [{ ciphertext, owner: connectorKeyOwner(_id), replace }];
  }
}

export interface KeyedAccount {
  account: AccountDocument;
  env: Env;
  owner: KeyOwner;
  keys: PayerKeys;
}

export async function* listPayerKeys({
  accounts,
}: Pick<EncryptedStores, 'accounts'>): AsyncGenerator<KeyedAccount> {
  const readPage = (after = '') => accounts.page(after, BATCH);
  for await (const account of readAll(readPage)) {
    for (const env of ENVIRONMENTS) {
      const keys = account.payer_keys?.[env];
      const owner = { account_id: account._id, livemode: isLive(env) };
      if (keys !== undefined) yield { account, env, owner, keys };
    }
  }
}

async function* readPayerKeys(stores: EncryptedStores) {
  for await (const { env, owner, keys } of listPayerKeys(stores)) {
    yield [keys, ...(keys.earlier ?? [])].map(({ ciphertext }) => ({
      ciphertext,
      owner: payerKeyOwner(owner),
      replace: (next: Encrypted, kid: string) =>
        stores.accounts.reencryptPayerKey(owner.account_id, env, ciphertext, {
          ciphertext: next,
          kid,
        }),
    }));
  }
}

/** `count` is a field of `KeyCounts`. */
export const VALUE_KINDS = [
  { count: 'endpoints', label: 'signing secrets', read: readEndpoints },
  { count: 'users', label: 'second factors', read: readUsers },
  { count: 'connector_keys', label: 'connector keys', read: readConnectorKeys },
  { count: 'payer_keys', label: 'keys of payers', read: readPayerKeys },
] as const satisfies readonly {
  count: string;
  label: string;
  read: (stores: EncryptedStores) => AsyncGenerator<EncryptedValue[]>;
}[];
