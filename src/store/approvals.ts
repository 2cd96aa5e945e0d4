import type { ClientSession, Db } from 'mongodb';
import { type MissingIndexes, makeIndexes } from '../base/mongo-indexes';
import type { CallbackResource } from '../domain/banks/callback';
import {
  type ApprovalState,
  type LimitTexts,
  OPEN_APPROVALS,
  type Scope,
  WINDOW_MS,
  WINDOW_PART_MS,
} from '../domain/operators/approval';

/** @see docs/operators.md#approvals */
export interface ApprovalDocument {
  _id: string;
  /** Such as `payout.mark_failed` or `balance.fund`, or the command that asks for authority. */
  act: string;
  /** Merchant, or bank account; null of an act on several. */
  account_id: string | null;
  /** Null of an act on a balance, a statement line, a file or no money at all. */
  resource: CallbackResource | null;
  target: string;
  /** Largest entry line, in minor or smallest units; of a plan the sum; null without money. */
  amount: string | null;
  currency: string | null;
  /** Never a secret. */
  input: Readonly<Record<string, unknown>>;
  /** Acts on many, approved as one. */
  plan?: readonly PlannedAct[];
  requested_by: string;
  /** Operator whose key was verified; null until one confirms the request. */
  requester_id: string | null;
  reason: string;
  created_at: string;
  expires_at: string;
  state: ApprovalState;
  /**
   * Names the act with its input while it is open, so that a repeat finds it; for good where the
   * act printed a secret, which no repeat does again.
   */
  open?: string;
  decided_by: string | null;
  decided_at: string | null;
  decision_reason: string | null;
  /** Present when an approved act was not possible any more. */
  refusal: { code: string; message: string } | null;
}

export interface PlannedAct {
  id: string;
  status: string;
  amount: string;
  /** In the transaction of the act. */
  is_done: boolean;
}

/** Sum of what was credited or written off without a second operator. */
interface SumDocument {
  /** Id of a `Scope`. */
  _id: string;
  /** Begin, in ms since the epoch, and minor units of each `WINDOW_PART_MS`. */
  parts: { at: number; amount: number }[];
  expires_at: Date;
}

/** Settings of the worker, which no environment of a command changes. */
interface PublishedLimits {
  _id: 'worker';
  text: string;
  day: string;
  live_connectors?: string[];
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
const DONE = { $set: { state: 'done' }, ...CLOSED } as const;

/** A part counts until its last act is older than the window. */
function getOldest(now: Date): number {
  return now.getTime() - WINDOW_MS - WINDOW_PART_MS;
}

export function createApprovalStore(db: Db) {
  const approvals = db.collection<ApprovalDocument>('approvals');
  const sums = db.collection<SumDocument>('approval_sums');
  const limits = db.collection<PublishedLimits>('approval_limits');
  const inTime = (now: Date) => ({ expires_at: { $gt: now.toISOString() } });
  return {
    ensureIndexes: async (missing?: MissingIndexes): Promise<void> => {
      const open = {
        key: { open: 1 },
        name: 'open',
        unique: true,
        partialFilterExpression: { open: { $type: 'string' } },
      };
      const state = { key: { state: 1, created_at: 1 }, name: 'state' };
      const created = { key: { created_at: 1 }, name: 'created' };
      await makeIndexes(approvals, [open, state, created], missing);
      const expired = { key: { expires_at: 1 }, name: 'expired', expireAfterSeconds: 0 };
      await makeIndexes(sums, [expired], missing);
    },
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
    finish: async (id: string, session?: ClientSession, keepsName = false): Promise<boolean> => {
      const approved = { _id: id, state: 'approved' } as const;
      const change = keepsName ? { $set: DONE.$set } : DONE;
      return (await approvals.updateOne(approved, change, { session })).matchedCount === 1;
    },
    /** Ends the request of an act on a resource, or the act's part of a plan. */
    finishAct: async (id: string, target: string, session: ClientSession): Promise<boolean> => {
      const approved = { _id: id, state: 'approved' } as const;
      const single = { ...approved, plan: { $exists: false } };
      if ((await approvals.updateOne(single, DONE, { session })).matchedCount === 1) return true;
      const planned = { ...approved, plan: { $elemMatch: { id: target, is_done: false } } };
      const change = { $set: { 'plan.$.is_done': true } } as const;
      return (await approvals.updateOne(planned, change, { session })).matchedCount === 1;
    },
    refuse: async (id: string, refusal: { code: string; message: string }): Promise<boolean> => {
      const filter = { _id: id, state: 'approved' } as const;
      const change = { $set: { state: 'refused', refusal }, ...CLOSED } as const;
      return (await approvals.updateOne(filter, change)).matchedCount === 1;
    },
    /** Publishes the worker's limits, empty where they are not set, and its live connectors. */
    publishLimits: (
      { limit = '', day = '' }: LimitTexts,
      live_connectors: readonly string[] = [],
    ) =>
      limits.updateOne(
        { _id: 'worker' },
        {
          $set: { text: limit, day },
          // One that is retired may still have resources.
          $addToSet: { live_connectors: { $each: [...live_connectors] } },
        },
        { upsert: true },
      ),
    readLiveConnectors: async (): Promise<readonly string[]> =>
      (await limits.findOne({ _id: 'worker' }))?.live_connectors ?? [],
    /** Empty before the first worker. */
    readLimits: async (session?: ClientSession): Promise<LimitTexts> => {
      const stored = await limits.findOne({ _id: 'worker' }, { session });
      return stored === null ? {} : { limit: stored.text, day: stored.day };
    },
    /** Minor units that every scope still allows. */
    readAllowance: async (
      scopes: readonly Scope[],
      now: Date,
      session?: ClientSession,
    ): Promise<number> => {
      const ids = scopes.map(({ id }) => id);
      const stored = await sums.find({ _id: { $in: ids } }, { session }).toArray();
      const allowances = scopes.map(({ id, limit }) => {
        const { parts = [] } = stored.find(({ _id }) => _id === id) ?? {};
        const counted = parts.filter(({ at }) => at > getOldest(now));
        return counted.reduce((left, { amount }) => left - amount, limit);
      });
      return Math.min(...allowances);
    },
    /**
     * Adds to a sum in the transaction of the act: acts at once have a write conflict.
     * @param amount minor units
     * @returns the new sum
     */
    addToSum: async (
      id: string,
      { amount, at, now }: { amount: number; at: Date; now: Date },
      session: ClientSession,
    ): Promise<number> => {
      const begin = Math.floor(at.getTime() / WINDOW_PART_MS) * WINDOW_PART_MS;
      const keep = (cond: object) => ({ $filter: { input: { $ifNull: ['$parts', []] }, cond } });
      const isSame = { $eq: ['$$this.at', begin] };
      const isOther = { $and: [{ $gt: ['$$this.at', getOldest(now)] }, { $not: [isSame] }] };
      const same = { $sum: { $map: { input: keep(isSame), in: '$$this.amount' } } };
      const parts = {
        $concatArrays: [keep(isOther), [{ at: begin, amount: { $add: [same, amount] } }]],
      };
      // Clocks may differ.
      const expires_at = new Date(now.getTime() + 2 * WINDOW_MS);
      const change = [{ $set: { parts, expires_at } }];
      const options = { upsert: true, returnDocument: 'after', session } as const;
      const after = await sums.findOneAndUpdate({ _id: id }, change, options);
      return (after?.parts ?? []).reduce((sum, part) => sum + part.amount, 0);
    },
    countWaiting: (now: Date) =>
      approvals.countDocuments({ state: { $in: [...OPEN_APPROVALS] }, ...inTime(now) }),
  };
}
