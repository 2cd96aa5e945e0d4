import { randomBytes, randomUUID } from 'node:crypto';
import type { MongoClient } from 'mongodb';
import type { Sealer } from '../keys/seal';
import { inTransaction } from '../mongo';
import type { Stores } from '../store';
import type { Audit } from '../store/audit';
import { type ConnectorKeyDocument, connectorKeyOwner } from '../store/connector-keys';

export interface ConnectorKeyDeps {
  mongo: MongoClient;
  stores: Pick<Stores, 'connectorKeys'>;
  audit: Audit;
  now: () => Date;
}

const SECRET_BYTES = 32;

/**
 * Makes one more key of a connector. It may have several, each shown once, so that a bank can move
 * from one to the next without a pause.
 * @see docs/connectors.md#callbacks-over-http
 */
export async function createConnectorKey(
  { mongo, stores, audit, now, sealer }: ConnectorKeyDeps & { sealer: Pick<Sealer, 'seal'> },
  connector: string,
): Promise<{ key_id: string; secret: string }> {
  const _id = `cnkey_${randomUUID()}`;
  const secret = `cnsec_${randomBytes(SECRET_BYTES).toString('base64url')}`;
  const sealed = await sealer.seal(secret, connectorKeyOwner(_id));
  const created_at = now().toISOString();
  await inTransaction(mongo, async (session) => {
    const key = { _id, connector, sealed, created_at, revoked_at: null };
    await stores.connectorKeys.insert(key, session);
    await audit({ ...changeOf('connector_key.created', key), after: { connector } }, session);
  });
  return { key_id: _id, secret };
}

/**
 * Revokes a key from the next callback on; again changes nothing.
 * @returns null when there is no such key
 */
export async function revokeConnectorKey(
  { mongo, stores, audit, now }: ConnectorKeyDeps,
  id: string,
): Promise<(ConnectorKeyDocument & { revoked_at: string }) | null> {
  return await inTransaction(mongo, async (session) => {
    const at = now().toISOString();
    const before = await stores.connectorKeys.revoke(id, at, session);
    if (before === null) return null;
    if (before.revoked_at !== null) return { ...before, revoked_at: before.revoked_at };
    const { connector } = before;
    await audit(
      {
        ...changeOf('connector_key.revoked', before),
        before: { connector, revoked_at: null },
        after: { connector, revoked_at: at },
      },
      session,
    );
    return { ...before, revoked_at: at };
  });
}

/** Change that belongs to no account: a connector serves them all. */
function changeOf(act: 'connector_key.created' | 'connector_key.revoked', key: { _id: string }) {
  return { act, account_id: null, livemode: null, target: key._id } as const;
}
