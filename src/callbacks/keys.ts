import { randomBytes, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { MongoClient } from 'mongodb';
import { z } from 'zod';
import { inTransaction } from '../base/mongo';
import type { Encrypter } from '../encryption/encrypter';
import { type WarningLog, warnOfReaders } from '../encryption/key-file';
import { parseJson } from '../encryption/service-keys';
import type { Stores } from '../store';
import type { Audit } from '../store/audit';
import { type ConnectorKeyDocument, connectorKeyOwner } from '../store/keys';
import type { ConnectorKey } from './verify';

export interface ConnectorKeyDeps {
  mongo: MongoClient;
  stores: Pick<Stores, 'connectorKeys'>;
  audit: Audit;
  now: () => Date;
}

const SECRET_BYTES = 32;

/**
 * Creates a key, whose secret is shown once. A connector can have several, so that a bank can
 * change keys without an interruption.
 * @param _id a repeat with the same creates no second key
 * @see docs/connectors.md#callbacks-over-http
 */
export async function createConnectorKey(
  deps: ConnectorKeyDeps & { encrypter: Pick<Encrypter, 'encrypt'> },
  connector: string,
  _id = `cnkey_${randomUUID()}`,
): Promise<{ key_id: string; secret: string }> {
  const { mongo, stores, audit, now, encrypter } = deps;
  const secret = `cnsec_${randomBytes(SECRET_BYTES).toString('base64url')}`;
  const ciphertext = await encrypter.encrypt(secret, connectorKeyOwner(_id));
  const created_at = now().toISOString();
  await inTransaction(mongo, async (session) => {
    const key = { _id, connector, ciphertext, created_at, revoked_at: null };
    await stores.connectorKeys.insert(key, session);
    await audit({ ...buildChange('connector_key.created', key), after: { connector } }, session);
  });
  return { key_id: _id, secret };
}

/** Revokes a key from the next callback on. Safe to repeat. @returns null without such a key */
export async function revokeConnectorKey(
  { mongo, stores, audit, now }: ConnectorKeyDeps,
  id: string,
  reason?: string,
): Promise<(ConnectorKeyDocument & { revoked_at: string }) | null> {
  return await inTransaction(mongo, async (session) => {
    const at = now().toISOString();
    const before = await stores.connectorKeys.revoke(id, at, session);
    if (before === null) return null;
    if (before.revoked_at !== null) return { ...before, revoked_at: before.revoked_at };
    const { connector } = before;
    const states = {
      before: { connector, revoked_at: null },
      after: { connector, revoked_at: at, reason },
    };
    await audit({ ...buildChange('connector_key.revoked', before), ...states }, session);
    return { ...before, revoked_at: at };
  });
}

/** A connector serves all accounts, so the change has none. */
function buildChange(act: 'connector_key.created' | 'connector_key.revoked', key: { _id: string }) {
  return { act, account_id: null, livemode: null, target: key._id } as const;
}

export async function listConnectorKeys(
  { stores }: Pick<ConnectorKeyDeps, 'stores'>,
  connector: string,
): Promise<Pick<ConnectorKeyDocument, '_id' | 'connector' | 'created_at' | 'revoked_at'>[]> {
  return await stores.connectorKeys.forConnector(connector);
}

const KeyFile = z.object({
  key_id: z.string().startsWith('cnkey_'),
  secret: z.string().startsWith('cnsec_'),
});

/**
 * Reads the output of `connector key create NAME --json`.
 * @returns undefined for an empty path
 * @throws Error that never quotes the file, if it is missing or invalid
 */
export function readConnectorKey(path: string, log: WarningLog): ConnectorKey | undefined {
  if (path === '') return undefined;
  const { data } = KeyFile.safeParse(parseJson(readFileSync(path, 'utf8')));
  warnOfReaders(path, log);
  if (data !== undefined) return data;
  throw new Error(
    `CONNECTOR_KEY_FILE: ${path} holds no key as \`connector key create\` prints it.`,
  );
}
