import type { Document, MongoClient } from 'mongodb';
import { toEnv } from '../../../domain/environment';
import type { AuditedAct, AuditFacts } from '../../../domain/operators/audit-log';
import { type InSnapshot, openSnapshots, readAll } from '../../../ledger-check/snapshot';
import type { ChainedLine } from '../../../store/audit';
import { fingerprint } from '../../../store/keys';
import { liftsPresented, presentSettings } from '../../merchants/accounts';
import { findOperator, type IsSigned } from './chains';

/** No line created the row (`…_unexplained`), or explains its state (`…_changed`). */
interface RowFinding {
  code: string;
  account_id: string | null;
  id: string;
  /** Facts that differ from the lines. */
  fields: string[];
}

export interface RowsCheck {
  rows: number;
  unexplained: number;
  findings: RowFinding[];
}

const FINDINGS_MAX = 1_000;
/** Rows of one account. */
const ROWS_AT_ONCE = 500;

/**
 * Compares rows with their audit lines, while both may change. A line without a place in a chain, or
 * without the signature of who may write it, explains nothing.
 */
export async function verifyRows(
  client: MongoClient,
  database: string,
  isSigned: IsSigned,
): Promise<RowsCheck> {
  const inSnapshot = openSnapshots(client, database);
  const check: RowsCheck = { rows: 0, unexplained: 0, findings: [] };
  for (const [noun, kind] of Object.entries(AUDITED_KINDS)) {
    for await (const batch of listBatches(client, database, kind)) {
      const findings = await checkBatch({ inSnapshot, isSigned }, { noun, ...kind }, batch);
      check.rows += batch.ids.length;
      check.unexplained += findings.length;
      check.findings.push(...findings.slice(0, FINDINGS_MAX - check.findings.length));
    }
  }
  return check;
}

interface Batch {
  /** A planted row may have anything. */
  account_id: unknown;
  ids: unknown[];
}

async function* listBatches(
  client: MongoClient,
  database: string,
  { collection, ofService }: AuditedKind,
): AsyncIterable<Batch> {
  const key = collection === 'accounts' ? '_id' : 'account_id';
  const rows = client.db(database).collection<Document>(collection);
  let batch: Batch = { account_id: null, ids: [] };
  for await (const row of rows.find({}, { projection: { [key]: 1 } }).sort({ [key]: 1 })) {
    const account_id = ofService === true ? null : (row[key] ?? null);
    if (account_id !== batch.account_id || batch.ids.length === ROWS_AT_ONCE) {
      if (batch.ids.length > 0) yield batch;
      batch = { account_id, ids: [] };
    }
    batch.ids.push(row._id);
  }
  if (batch.ids.length > 0) yield batch;
}

async function checkBatch(
  { inSnapshot, isSigned }: { inSnapshot: InSnapshot; isSigned: IsSigned },
  { noun, collection, isMadeOnce, acts, name, facts }: AuditedKind & { noun: string },
  { account_id, ids }: Batch,
): Promise<RowFinding[]> {
  return await inSnapshot(async (read) => {
    const rows = await readAll(read(collection, { _id: { $in: ids } }));
    const expected = new Map<unknown, AuditFacts | undefined>(
      rows.map((row) => [name(row), undefined]),
    );
    const account = { account_id: { $eq: account_id } };
    const filter = { ...account, act: { $in: Object.keys(acts) }, seq: { $gte: 1 } };
    for await (const line of read<ChainedLine>('audit_log', filter, { sort: { seq: 1 } })) {
      const effect = acts[line.act]?.(line);
      if (effect === undefined || !expected.has(effect.name) || !(await isSigned(line))) continue;
      const before = expected.get(effect.name);
      if (isMadeOnce && before && effect.creates) continue;
      const { changes } = effect;
      const changed = before && changes && { ...before, ...omitLifted(before, changes, line) };
      expected.set(effect.name, effect.creates ?? changed);
    }
    return rows.flatMap((row) => {
      const id = name(row);
      const explained = expected.get(id);
      const about = { account_id: account_id === null ? null : String(account_id), id: String(id) };
      if (explained === undefined) return [{ code: `${noun}_unexplained`, ...about, fields: [] }];
      const actual = facts(row);
      const differs = (field: string) => toText(actual[field]) !== toText(explained[field]);
      const fields = Object.keys(actual).filter(differs);
      return fields.length === 0 ? [] : [{ code: `${noun}_changed`, ...about, fields }];
    });
  });
}

/** Leaves out the brakes of an account where a line lifts one, but no operator signed it. */
function omitLifted(before: AuditFacts, changes: AuditFacts, line: ChainedLine): AuditFacts {
  if (line.act !== 'account.updated' || findOperator(line) !== undefined) return changes;
  if (!liftsPresented(before, changes)) return changes;
  const { payout_limits, owed_limits, refund_step_up, hold_unverified, ...others } = changes;
  return others;
}

/** Treats absent, empty list and `false` alike. */
function toText(value: AuditFacts[string]): string {
  const isEmpty =
    value === undefined || value === false || (Array.isArray(value) && value.length === 0);
  return JSON.stringify(isEmpty ? null : value);
}

/** Removes the row where it has no facts. */
interface Effect {
  /** Unique in the account. */
  name: unknown;
  creates?: AuditFacts;
  changes?: AuditFacts;
}

interface AuditedKind {
  collection: string;
  /** Lines concern the service, whatever account a row is about. */
  ofService?: true;
  /** Another line that creates it is forged, and explains nothing. */
  isMadeOnce?: true;
  name: (row: Document) => unknown;
  /** Named as in the lines. */
  facts: (row: Document) => AuditFacts;
  acts: Partial<Record<AuditedAct, (line: ChainedLine) => Effect | undefined>>;
}

const getId = ({ _id }: Document): unknown => _id;
const creates = ({ target, livemode, after }: ChainedLine): Effect => ({
  name: target,
  creates: { livemode, ...after },
});
const changes = ({ target, after }: ChainedLine): Effect => ({
  name: target,
  changes: { ...after },
});
/** Other facts of a forged line count for nothing. */
const changesAllBut =
  (fact: string) =>
  ({ target, after }: ChainedLine): Effect => {
    const { [fact]: _, ...others } = { ...after };
    return { name: target, changes: others };
  };
const removes = ({ target }: ChainedLine): Effect => ({ name: target });
const changesTo =
  (facts: AuditFacts) =>
  ({ target }: ChainedLine): Effect => ({ name: target, changes: facts });
/** Rows that give access or direct money, and the acts that explain them. */
const AUDITED_KINDS: Record<string, AuditedKind> = {
  account: {
    collection: 'accounts',
    isMadeOnce: true,
    name: getId,
    facts: ({ name, frozen, ...settings }) => ({
      ...presentSettings(Object(settings)),
      ...{ name, frozen: frozen !== undefined },
    }),
    acts: {
      'account.created': creates,
      'account.updated': changesAllBut('frozen'),
      'account.frozen': changesTo({ frozen: true }),
      'account.unfrozen': changesTo({ frozen: false }),
    },
  },
  api_key: {
    collection: 'api_keys',
    name: getId,
    facts: ({ livemode, hash, scopes, expires_at, allowed_cidrs, revoked_at }) => ({
      ...{ livemode, fingerprint: fingerprint(String(hash)), scopes },
      ...{ expires_at, allowed_cidrs, revoked_at },
    }),
    acts: { 'api_key.created': creates, 'api_key.revoked': changes },
  },
  operator: {
    collection: 'operators',
    name: getId,
    facts: ({ hash, public_key, name, role, revoked_at }) => ({
      ...{ fingerprint: fingerprint(String(hash)), public_key, name, role, revoked_at },
    }),
    acts: { 'operator.created': creates, 'operator.revoked': changes },
  },
  connector_key: {
    collection: 'connector_keys',
    name: getId,
    facts: ({ connector, revoked_at }) => ({ connector, revoked_at }),
    acts: { 'connector_key.created': creates, 'connector_key.revoked': changes },
  },
  connector_pause: {
    collection: 'connector_pauses',
    ofService: true,
    name: getId,
    facts: ({ livemode, connector }) => ({ livemode, connector }),
    acts: { 'connector.paused': creates, 'connector.resumed': removes },
  },
  connector_release: {
    collection: 'connector_releases',
    ofService: true,
    name: getId,
    facts: ({ livemode, connector }) => ({ livemode, connector }),
    acts: { 'connector.released': creates },
  },
  routing_rule: {
    collection: 'routing_rules',
    ofService: true,
    name: getId,
    facts: ({ livemode, method, currency, account_id: account, connector }) => ({
      ...{ livemode, method, currency, account, connector },
    }),
    acts: { 'routing.set': creates, 'routing.removed': removes },
  },
  user: {
    collection: 'users',
    name: getId,
    facts: ({ email, role, totp, passkeys = [] }) => ({
      ...{ email, role, second_factor: totp !== null },
      ...Object.fromEntries(Object.values(passkeys).map((passkey) => [Object(passkey).id, true])),
    }),
    acts: {
      'account.created': ({ after }) => ({
        name: after?.['owner'],
        creates: { email: after?.['email'], role: 'owner' },
      }),
      'user.joined': creates,
      'user.role_changed': changes,
      'user.removed': removes,
      'user.second_factor_on': changesTo({ second_factor: true }),
      'user.second_factor_off': changesTo({ second_factor: false }),
      'passkey.added': ({ target, after }) => ({
        name: target,
        changes: { [String(after?.['passkey'])]: true },
      }),
      'passkey.removed': ({ target, before }) => ({
        name: target,
        changes: { [String(before?.['passkey'])]: false },
      }),
    },
  },
  invitation: {
    collection: 'dashboard_invitations',
    name: ({ email }) => email,
    facts: ({ role }) => ({ role }),
    acts: {
      'user.invited': creates,
      'user.invitation_withdrawn': removes,
      'user.joined': ({ after }) => ({ name: after?.['email'] }),
    },
  },
  webhook_endpoint: {
    collection: 'webhook_endpoints',
    name: ({ endpoint_id }) => endpoint_id,
    facts: ({ url, enabled_events, disabled_reason }) => ({
      ...{ url, events: enabled_events ?? 'all', disabled_reason },
    }),
    acts: {
      'webhook.set': creates,
      'webhook.created': creates,
      'webhook.updated': changes,
      'webhook.disabled': changes,
      'webhook.deleted': removes,
    },
  },
  wallet: {
    collection: 'wallets',
    name: ({ livemode, network }) => `${toEnv(livemode)} ${network}`,
    facts: ({ address, counts_from }) => ({ address, counts_from }),
    acts: {
      'wallet.set': (line) => ({
        ...creates(line),
        name: `${toEnv(line.livemode === true)} ${line.target}`,
      }),
    },
  },
};
