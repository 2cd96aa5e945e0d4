import { createHash, randomBytes } from 'node:crypto';
import type { ClientSession, Db } from 'mongodb';
import { inTransaction } from '../base/mongo';
import { type MissingIndexes, makeIndexes } from '../base/mongo-indexes';
import { omitUndefined } from '../domain/defined';
import { type AuditedAct, type AuditFacts, leaveOutSecrets } from '../domain/operators/audit-log';
import { countBy, LIST_MS_MAX, toRange } from './list';

export interface Change {
  act: AuditedAct;
  account_id: string | null;
  /** Null: both environments. */
  livemode: boolean | null;
  target: string | null;
  before?: AuditFacts | null;
  after?: AuditFacts | null;
}

/**
 * Adds a line in the session of the change, so that both are written or none. Outside MongoDB, an
 * act on money is logged with its outcome, and any other before it.
 * A value that has the form of a secret is left out.
 */
export type Audit = (change: Change, session?: ClientSession) => Promise<void>;

export function auditBy(
  { stores, now }: { stores: { auditLog: Pick<AuditLogStore, 'add'> }; now: () => Date },
  actor: Actor,
  sign?: Sign,
): Audit {
  return async (change, session) => {
    const at = now().toISOString();
    const _id = `${at}_${randomBytes(8).toString('hex')}`;
    await stores.auditLog.add(buildLine(change, actor, { _id, at }), session, sign);
  };
}

/** Adds nothing when an earlier attempt did. @param once identity of the change */
export async function auditOnce(
  { auditLog }: { auditLog: Pick<AuditLogStore, 'add' | 'has'> },
  { change, actor, once }: { change: Change; actor: Actor; once: { id: string; at: string } },
  session: ClientSession,
): Promise<void> {
  const { id, at } = once;
  const _id = `${at}_${createHash('sha256').update(id).digest('hex').slice(0, 16)}`;
  if (await auditLog.has(_id, session)) return;
  await auditLog.add(buildLine(change, actor, { _id, at }), session);
}

function buildLine(
  { before = null, after = null, ...change }: Change,
  actor: Actor,
  place: Pick<AuditLine, '_id' | 'at'>,
): AuditLine {
  const read = (facts: AuditFacts | null) => facts && leaveOutSecrets(omitUndefined(facts));
  return { ...place, ...change, actor, before: read(before), after: read(after) };
}

/** Signs the hash of a line under the key of the operator whose act it is, or of the process. */
export type Sign = (hash: string, line: AuditLine) => string;

export interface Origin {
  address: string;
  request_id: string;
}

export type Actor =
  | ({ via: 'dashboard'; user_id: string; email: string; session?: string } & Partial<Origin>)
  | ({ via: 'api'; key_id: string } & Partial<Origin>)
  | { via: 'command_line'; system_user: string; host: string; operator?: string }
  /** Acts by a rule. */
  | { via: 'service' }
  /** An update to a workflow names a sender, unverified. */
  | { via: 'workflow'; operator: string };

/** Line of the append-only audit log. @see docs/dashboard.md#audit-log */
export interface AuditLine {
  /** Time and a random part, so that ids sort as the lines were written. */
  _id: string;
  at: string;
  /** Null: concerns the service, and no merchant sees it. */
  account_id: string | null;
  /** Null: both environments. */
  livemode: boolean | null;
  actor: Actor;
  act: AuditedAct;
  target: string | null;
  before: AuditFacts | null;
  after: AuditFacts | null;
}

export interface ChainedLine extends AuditLine {
  seq: number;
  /** Null on the first line. */
  prev: string | null;
  /** SHA-256 of all other fields but the signature, hex. */
  hash: string;
  /** Signature of the hash. */
  signature?: string;
}

export interface ChainHead {
  /** Account, or `INSTALLATION`. */
  _id: string;
  seq: number;
  hash: string;
}

interface AuditFilter {
  account_id?: string | undefined;
  livemode?: boolean | undefined;
  act?: AuditedAct | undefined;
  /** Leaves out lines that the service did not write. */
  onlyChained?: boolean;
  limit: number;
  /** Id: only older lines. */
  before?: string | undefined;
  /** Id: only newer lines, oldest first. */
  after?: string | undefined;
  /** ISO 8601; an id begins with its time. */
  since?: string | undefined;
}

const BY_OPERATORS = { 'actor.via': 'command_line' };
const APPROVED = { 'after.approval_id': { $exists: true } };

/** Acts on live by which a thief would stay, or that respond to one, and which of their lines. */
const WATCHED_ACTS: Partial<Record<AuditedAct, object>> = {
  'account.frozen': {},
  'account.unfrozen': {},
  // Only a change that lifts a limit is approved.
  'account.updated': APPROVED,
  'api_key.created': {},
  'connector.released': {},
  'connector_key.created': {},
  'connector_key.revoked': {},
  'operator.created': {},
  'operator.revoked': {},
  'user.invited': { $or: [BY_OPERATORS, { 'after.role': 'owner' }] },
  'user.password_reset': {},
  'wallet.set': {},
  'webhook.created': BY_OPERATORS,
  'webhook.rolled': BY_OPERATORS,
  'webhook.set': BY_OPERATORS,
  'webhook.updated': APPROVED,
};

const INSTALLATION = 'installation';

/** Accounts have their own chain, so that none waits for another. */
export function getChainName({ account_id }: Pick<AuditLine, 'account_id'>): string {
  return account_id ?? INSTALLATION;
}

export function hashLine(line: Omit<ChainedLine, 'hash' | 'signature'>): string {
  return createHash('sha256')
    .update(JSON.stringify(sortFields(line)))
    .digest('hex');
}

function sortFields(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortFields);
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value).filter(([, field]) => field !== undefined);
  return fields
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, field]) => [name, sortFields(field)]);
}

export type AuditLogStore = ReturnType<typeof createAuditLogStore>;

/** @param signOwn signs what no operator does; a process without a key writes no lines */
export function createAuditLogStore(db: Db, signOwn?: Sign) {
  const lines = db.collection<ChainedLine>('audit_log');
  const heads = db.collection<ChainHead>('audit_heads');

  /** Two writers at once have a write conflict on the head, so that one starts again. */
  const addLine = async (
    line: AuditLine,
    session: ClientSession,
    sign: Sign | undefined = signOwn,
  ): Promise<void> => {
    const _id = getChainName(line);
    const head = await heads.findOne({ _id }, { session });
    const place = { seq: (head?.seq ?? 0) + 1, prev: head?.hash ?? null };
    const hash = hashLine({ ...line, ...place });
    const next = { $set: { seq: place.seq, hash } };
    await heads.updateOne({ _id }, next, { session, upsert: head === null });
    const signed = sign === undefined ? {} : { signature: sign(hash, line) };
    await lines.insertOne({ ...line, ...place, hash, ...signed }, { session });
  };

  return {
    ensureIndexes: async (missing?: MissingIndexes) => {
      await makeIndexes(
        lines,
        [
          { key: { account_id: 1, _id: -1 }, name: 'account' },
          { key: { account_id: 1, act: 1, _id: -1 }, name: 'account_act' },
          { key: { account_id: 1, seq: 1 }, name: 'chain', unique: true },
        ],
        missing,
      );
      await makeIndexes(heads, [{ key: { seq: 1 }, name: 'length' }], missing);
    },
    add: async (line: AuditLine, session?: ClientSession, sign?: Sign): Promise<void> => {
      if (session !== undefined) return await addLine(line, session, sign);
      await inTransaction(db.client, (own) => addLine(line, own, sign));
    },
    has: async (_id: string, session: ClientSession): Promise<boolean> =>
      (await lines.findOne({ _id }, { session })) !== null,
    list: (
      { account_id, livemode, act, limit, before, after, since, onlyChained }: AuditFilter,
      session?: ClientSession,
    ) =>
      lines
        .find(
          omitUndefined({
            account_id,
            livemode: livemode === undefined ? undefined : { $in: [livemode, null] },
            act,
            seq: onlyChained === true ? { $gte: 1 } : undefined,
            _id: toRange({ $lt: before, $gt: after, $gte: since }),
          }),
          { session },
        )
        .sort({ _id: after === undefined ? -1 : 1 })
        .limit(limit)
        .maxTimeMS(LIST_MS_MAX)
        .toArray(),
    /** An id begins with its time. */
    countWatched: async (since: string): Promise<{ act: string; count: number }[]> => {
      const acts = Object.entries(WATCHED_ACTS).map(([act, which]) => ({ ...which, act }));
      const live = { _id: { $gte: since }, livemode: { $ne: false }, $or: acts };
      const found = await countBy<{ act: string; count: number }>(lines, live, { act: '$act' });
      return acts.map(({ act }) => found.find((row) => row.act === act) ?? { act, count: 0 });
    },
    heads: () => heads.find().sort({ _id: 1 }).toArray(),
    head: (chain: string) => heads.findOne({ _id: chain }),
    listChained: () => lines.find().sort({ account_id: 1, seq: 1 }),
  };
}
