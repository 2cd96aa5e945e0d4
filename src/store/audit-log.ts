import type { ClientSession, Collection, Db } from 'mongodb';
import type { AuditedAct, AuditFacts } from '../domain/audit-log';
import { type IndexWork, makeIndexes } from '../mongo-indexes';

/** Person, API key or system user behind a change. */
export type Actor =
  | { door: 'dashboard'; user_id: string; email: string }
  | { door: 'api'; key_id: string }
  | { door: 'command_line'; system_user: string; host: string };

/** Line of the append-only audit log. @see docs/dashboard.md#audit-log */
export interface AuditLine {
  /** Time and a random part, so that ids sort as the lines were written. */
  _id: string;
  at: string;
  /** Null where it concerns the service: no merchant's log shows it. */
  account_id: string | null;
  /** Null where it concerns both environments. */
  livemode: boolean | null;
  actor: Actor;
  act: AuditedAct;
  /** Id of what was changed. */
  target: string | null;
  before: AuditFacts | null;
  after: AuditFacts | null;
}

interface AuditFilter {
  account_id: string;
  livemode: boolean;
  act?: AuditedAct | undefined;
  limit: number;
  /** Lines older than this one. */
  before?: string | undefined;
  /** Lines newer than this one, oldest first. */
  after?: string | undefined;
}

/** A list that takes longer must not go on on the server. */
const LIST_MS_MAX = 4_000;

export type AuditLogStore = ReturnType<typeof createAuditLogStore>;

/** Lines are added and read; nothing changes or removes one. */
export function createAuditLogStore(db: Db) {
  const lines: Collection<AuditLine> = db.collection<AuditLine>('audit_log');
  return {
    ensureIndexes: (work?: IndexWork) =>
      makeIndexes(
        lines,
        [
          { key: { account_id: 1, _id: -1 }, name: 'account' },
          { key: { account_id: 1, act: 1, _id: -1 }, name: 'account_act' },
        ],
        work,
      ),
    add: (line: AuditLine, session?: ClientSession) => lines.insertOne(line, { session }),
    /** Lines of one environment, and those that concern both. */
    list: ({ account_id, livemode, act, limit, before, after }: AuditFilter) =>
      lines
        .find({
          account_id,
          livemode: { $in: [livemode, null] },
          ...(act && { act }),
          ...(before && { _id: { $lt: before } }),
          ...(after && { _id: { $gt: after } }),
        })
        .sort({ _id: after === undefined ? -1 : 1 })
        .limit(limit)
        .maxTimeMS(LIST_MS_MAX)
        .toArray(),
  };
}
