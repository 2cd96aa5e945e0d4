import type { ClientSession, Db } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';
import { type ApprovalState, OPEN_APPROVALS } from '../domain/approval';
import type { CallbackResource } from '../domain/callback/callback';

/** @see docs/operators.md#approvals */
export interface ApprovalDocument {
  _id: string;
  /** Such as `payout.mark_failed` or `balance.fund`. */
  act: string;
  /** Null of an act on several. */
  account_id: string | null;
  /** Null of an act on a balance, or on a file. */
  resource: CallbackResource | null;
  target: string;
  /** Largest entry line, in minor or smallest units. */
  amount: string;
  currency: string;
  input: Readonly<Record<string, string | number | boolean | undefined>>;
  requested_by: string;
  /** Operator whose key was verified; null until one confirms the request. */
  requester_id: string | null;
  reason: string;
  created_at: string;
  expires_at: string;
  state: ApprovalState;
  /** Names the act with its input while it is open, so that a repeat finds it. */
  open?: string;
  decided_by: string | null;
  decided_at: string | null;
  decision_reason: string | null;
  /** Present when an approved act was not possible any more. */
  refusal: { code: string; message: string } | null;
}

interface Decision {
  state: 'approved' | 'rejected';
  by: string;
  reason: string;
  now: Date;
}

const LIST_MAX = 1_000;
/** An act that began in time may end later. */
const GRACE_MS = 10 * 60_000;

const CLOSED = { $unset: { open: '' } } as const;

export function createApprovalStore(db: Db) {
  const approvals = db.collection<ApprovalDocument>('approvals');
  const limits = db.collection<{ _id: 'worker'; text: string }>('approval_limits');
  const inTime = (now: Date) => ({ expires_at: { $gt: now.toISOString() } });
  return {
    ensureIndexes: indexBuilder(approvals, [
      {
        key: { open: 1 },
        name: 'open',
        unique: true,
        partialFilterExpression: { open: { $type: 'string' } },
      },
      { key: { state: 1, created_at: 1 }, name: 'state' },
      { key: { created_at: 1 }, name: 'created' },
    ]),
    /** @throws MongoServerError duplicate key `open` when the same act waits already */
    insert: (approval: ApprovalDocument, session: ClientSession) =>
      approvals.insertOne(approval, { session }),
    get: (id: string) => approvals.findOne({ _id: id }),
    findOpen: (open: string) => approvals.findOne({ open }),
    /** Lists open ones, or all, the oldest first. */
    list: (all: boolean) =>
      approvals
        .find(all ? {} : { state: { $in: [...OPEN_APPROVALS] } })
        .sort({ created_at: 1, _id: 1 })
        .limit(LIST_MAX)
        .toArray(),
    expire: async (now: Date): Promise<void> => {
      const late = new Date(now.getTime() - GRACE_MS);
      for (const [state, time] of [
        ['requested', now],
        ['approved', late],
      ] as const) {
        const filter = { state, expires_at: { $lte: time.toISOString() } };
        await approvals.updateMany(filter, { $set: { state: 'expired' }, ...CLOSED });
      }
    },
    /** @returns false when another operator confirmed first */
    confirm: async (
      id: string,
      by: { name: string; operator_id: string },
      now: Date,
      session?: ClientSession,
    ): Promise<boolean> => {
      const filter = { _id: id, state: 'requested', requester_id: null, ...inTime(now) } as const;
      const change = { requested_by: by.name, requester_id: by.operator_id };
      return (await approvals.updateOne(filter, { $set: change }, { session })).matchedCount === 1;
    },
    /** Decides once, before the expiry, and only if a verified operator made the request. */
    decide: async (
      id: string,
      { state, by, reason, now }: Decision,
      session: ClientSession,
    ): Promise<boolean> => {
      const isVerified = state === 'approved' ? { requester_id: { $ne: null } } : {};
      const filter = { _id: id, state: 'requested', ...isVerified, ...inTime(now) } as const;
      const decided = { decided_by: by, decided_at: now.toISOString(), decision_reason: reason };
      const change = { $set: { state, ...decided }, ...(state === 'rejected' ? CLOSED : {}) };
      return (await approvals.updateOne(filter, change, { session })).matchedCount === 1;
    },
    /** Ends a request in the transaction that posts its act. */
    finish: async (id: string, session?: ClientSession): Promise<boolean> => {
      const filter = { _id: id, state: 'approved' } as const;
      const change = { $set: { state: 'done' }, ...CLOSED } as const;
      return (await approvals.updateOne(filter, change, { session })).matchedCount === 1;
    },
    refuse: async (id: string, refusal: { code: string; message: string }): Promise<boolean> => {
      const filter = { _id: id, state: 'approved' } as const;
      const change = { $set: { state: 'refused', refusal }, ...CLOSED } as const;
      return (await approvals.updateOne(filter, change)).matchedCount === 1;
    },
    /** Publishes the worker's APPROVAL_LIMIT, empty where it is not set. */
    publishLimit: (text: string) =>
      limits.updateOne({ _id: 'worker' }, { $set: { text } }, { upsert: true }),
    /** @returns null before the first worker */
    readLimit: async (): Promise<string | null> =>
      (await limits.findOne({ _id: 'worker' }))?.text ?? null,
    countWaiting: (now: Date) =>
      approvals.countDocuments({ state: { $in: [...OPEN_APPROVALS] }, ...inTime(now) }),
  };
}
