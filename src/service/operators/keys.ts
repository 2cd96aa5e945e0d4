import { randomBytes, randomUUID } from 'node:crypto';
import { inTransaction, isDuplicateKey } from '../../base/mongo';
import { omitUndefined } from '../../domain/defined';
import { ServiceError } from '../../domain/errors';
import {
  isSameOperator,
  type OperatorRole,
  type VerifiedOperator,
} from '../../domain/operators/operator-act';
import { derivePublicKey } from '../../encryption/audit-keys';
import { fingerprint, hashKey, type OperatorDocument } from '../../store/keys';
import type { WriteDeps } from '../access';

const KEY_BYTES = 32;

interface NewOperator extends Pick<OperatorDocument, 'created_by' | 'first'> {
  name: string;
  role: OperatorRole;
  /** A repeat with the same id creates no second key. */
  id?: string;
}

/**
 * The key is shown once. Keys under one name belong to one operator.
 * @throws MongoServerError duplicate key when the id or the place is already used
 * @see docs/operators.md#operators-and-their-keys
 */
export async function createOperator(
  { mongo, stores, audit, now }: WriteDeps,
  { name, role, id: operator_id = `op_${randomUUID()}`, ...origin }: NewOperator,
): Promise<VerifiedOperator & { key: string }> {
  const key = `opkey_${randomBytes(KEY_BYTES).toString('base64url')}`;
  await inTransaction(mongo, async (session) => {
    const created_at = now().toISOString();
    const hash = hashKey(key);
    const public_key = derivePublicKey(key);
    const own = { _id: operator_id, name, role, hash, public_key, created_at };
    const document = { ...own, ...omitUndefined(origin) };
    await stores.operators.insert({ ...document, revoked_at: null }, session);
    const change = { act: 'operator.created', account_id: null, livemode: null } as const;
    await audit(
      {
        ...change,
        target: operator_id,
        after: { name, role, public_key, fingerprint: fingerprint(hash), ...origin },
      },
      session,
    );
  });
  return { operator_id, name, role, key };
}

const FIRST_MAX = 2;

/** Whether two keys were created, also ones that are revoked: then another needs an approval. */
export async function areFirstCreated({ stores }: Pick<WriteDeps, 'stores'>): Promise<boolean> {
  return (await stores.operators.listFirst()).length >= FIRST_MAX;
}

/**
 * Creates one of the first two keys of the installation, which nobody can approve yet: of two
 * approvers, so that each can approve what the other asks for.
 * @throws ServiceError `role_not_allowed`, `same_operator`; `operator_key_required` after two
 */
export async function createFirstOperator(
  deps: WriteDeps,
  { name, role }: { name: string; role: OperatorRole },
): Promise<VerifiedOperator & { key: string }> {
  if (role !== 'approver') {
    const message = 'The first two operators are approvers: without two, nobody could approve.';
    throw new ServiceError('role_not_allowed', message);
  }
  const [earlier, ...others] = await deps.stores.operators.listFirst();
  if (others.length > 0) {
    const message = 'The first two keys exist: set OPERATOR_KEY to ask for another one.';
    throw new ServiceError('operator_key_required', message);
  }
  if (earlier !== undefined && isSameOperator(earlier.name, name)) {
    const message = `The first key is of ${earlier.name}: the second is of another operator.`;
    throw new ServiceError('same_operator', message);
  }
  const first = earlier?.first === 1 ? 2 : 1;
  try {
    return await createOperator(deps, { name, role, first });
  } catch (error) {
    if (!isDuplicateKey(error, 'first')) throw error;
    // Another was created meanwhile.
    return await createFirstOperator(deps, { name, role });
  }
}

export type ListedOperator = Omit<OperatorDocument, 'hash' | 'public_key'>;

/** Oldest first. */
export function listOperators({ stores }: Pick<WriteDeps, 'stores'>): Promise<ListedOperator[]> {
  return stores.operators.list();
}

/**
 * Revokes one key, or all keys under a name; a repeat changes nothing.
 * @throws ServiceError `operator_not_found`
 */
export async function revokeOperator(
  { mongo, stores, audit, now }: WriteDeps,
  nameOrId: string,
  reason?: string,
): Promise<ListedOperator[]> {
  const all = await stores.operators.list();
  const byId = all.filter(({ _id }) => _id === nameOrId);
  const found = byId.length > 0 ? byId : all.filter(({ name }) => isSameOperator(name, nameOrId));
  if (found.length === 0) {
    const message = `There is no operator ${nameOrId}: \`operator list\` shows those there are.`;
    throw new ServiceError('operator_not_found', message);
  }
  return await inTransaction(mongo, async (session) => {
    const at = now().toISOString();
    const revoked: ListedOperator[] = [];
    for (const { _id: target, ...operator } of found) {
      const before = await stores.operators.revoke(target, at, session);
      revoked.push({ ...operator, _id: target, revoked_at: before?.revoked_at ?? at });
      if (before?.revoked_at !== null) continue;
      const { name, role } = operator;
      const change = { act: 'operator.revoked', account_id: null, livemode: null, target } as const;
      const facts = { before: { name, role, revoked_at: null }, after: { revoked_at: at, reason } };
      await audit({ ...change, ...facts }, session);
    }
    return revoked;
  });
}

/** @throws ServiceError `operator_key_required`, `operator_key_invalid`, `operator_key_revoked` */
export async function verifyOperator(
  { stores }: Pick<WriteDeps, 'stores'>,
  key: string | undefined,
): Promise<VerifiedOperator> {
  if (key === undefined) {
    const message =
      'On live this needs your key: set OPERATOR_KEY. `operator create` makes one; a typed name ' +
      'proves nothing.';
    throw new ServiceError('operator_key_required', message);
  }
  const operator = await stores.operators.byHash(hashKey(key));
  if (operator === null) {
    throw new ServiceError('operator_key_invalid', 'OPERATOR_KEY is not the key of an operator.');
  }
  const { _id: operator_id, name, role, revoked_at } = operator;
  if (revoked_at !== null) {
    const message = `The key of ${name} in OPERATOR_KEY is revoked since ${revoked_at}.`;
    throw new ServiceError('operator_key_revoked', message);
  }
  return { operator_id, name, role };
}
