import { randomUUID } from 'node:crypto';
import type { ClientSession, Collection, Db } from 'mongodb';
import type { BankCallback, BankResource } from '../../src/domain/callback/callback';
import { omitUndefined } from '../../src/domain/defined';
import type { CallbackByResource, PlannedCallback } from './plan';

/** Subject of a callback. */
export interface CallbackSubject<R extends BankResource = BankResource> {
  resource: R;
  resource_id: string;
}

/** Callback to be sent, written in the transaction of its decision. */
export interface OutboxRow<R extends BankResource = BankResource> extends CallbackSubject<R> {
  /** The callback's id, with a suffix where it is sent twice on purpose. */
  _id: string;
  name: CallbackByResource[R]['name'];
  body: BankCallback;
  becomes: CallbackByResource[R]['becomes'] | null;
  /** Whether it gives way to a simulation that has moved the resource elsewhere. */
  autoplay?: true;
  /** `dropped`: its fact never came about, such as after a void, or it gave way. */
  state: 'pending' | 'sent' | 'parked' | 'dropped';
  due_at: Date;
  attempts: number;
  last_error: string | null;
  done_at: Date | null;
}

/** Form of rows from when every callback was about a payment. */
type EarlierRow = Omit<OutboxRow<'payment'>, keyof CallbackSubject> & { payment_id: string };

const KEEP_S = 30 * 86_400;
/** Lease of a row: after it, another sender takes over from one that was killed. */
const LEASE_MS = 5_000;
const BACKOFF_MAX_MS = 30_000;

export type Outbox = ReturnType<typeof createOutbox>;

export function createOutbox(db: Db, now: () => Date) {
  const rows: Collection<OutboxRow | EarlierRow> = db.collection('outbox');
  const later = (ms: number) => new Date(now().getTime() + ms);
  return {
    ensureIndexes: () =>
      rows.createIndexes([
        { key: { state: 1, due_at: 1 }, name: 'due' },
        { key: { resource: 1, resource_id: 1, state: 1 }, name: 'resource' },
        { key: { done_at: 1 }, name: 'kept', expireAfterSeconds: KEEP_S },
      ]),
    /** Adds callbacks once, each with its ID. */
    add: async <R extends BankResource>(
      about: CallbackSubject<R> & { bank_reference: string },
      planned: PlannedCallback<R>[],
      session: ClientSession,
    ): Promise<void> => {
      // The driver takes no empty list.
      if (planned.length === 0) return;
      await rows.insertMany(toRows(about, planned, now()), { session });
    },
    /** Claims due rows for this sender; others leave them alone until the lease ends. */
    claim: async (limit: number): Promise<OutboxRow[]> => {
      const due = await rows
        .find({ state: 'pending', due_at: { $lte: now() } })
        .sort({ due_at: 1 })
        .limit(limit)
        .toArray();
      const results = await Promise.all(
        due.map(({ _id, due_at }) =>
          rows.findOneAndUpdate(
            { _id, state: 'pending', due_at },
            { $set: { due_at: later(LEASE_MS) }, $inc: { attempts: 1 } },
            { returnDocument: 'after' },
          ),
        ),
      );
      return results.filter((row) => row !== null).map(readRow);
    },
    finish: (_id: string, state: 'sent' | 'parked' | 'dropped') =>
      rows.updateOne({ _id, state: 'pending' }, { $set: { state, done_at: now() } }),
    /** Puts a row off that was not sent, for longer each time. */
    retry: ({ _id, attempts }: OutboxRow, last_error: string) => {
      const wait = Math.min(250 * 2 ** Math.min(attempts, 10), BACKOFF_MAX_MS);
      return rows.updateOne({ _id }, { $set: { due_at: later(wait), last_error } });
    },
    /** Drops the callbacks of a resource whose facts have not come about. */
    drop: ({ resource, resource_id }: CallbackSubject, session: ClientSession) =>
      rows.updateMany(
        { resource, resource_id, state: 'pending', becomes: { $ne: null } },
        { $set: { state: 'dropped', done_at: now() } },
        { session },
      ),
  };
}

function readRow(row: OutboxRow | EarlierRow): OutboxRow {
  return 'payment_id' in row ? { ...row, resource: 'payment', resource_id: row.payment_id } : row;
}

function toRows<R extends BankResource>(
  { resource, resource_id, bank_reference }: CallbackSubject<R> & { bank_reference: string },
  planned: PlannedCallback<R>[],
  now: Date,
): OutboxRow<R>[] {
  const ids = new Map<string, string>();
  return planned.map(({ name, after_ms, becomes, repeat, autoplay, code, reason }) => {
    const before = repeat === true ? ids.get(name) : undefined;
    const callback_id = before ?? `cb_${randomUUID()}`;
    ids.set(name, callback_id);
    const due_at = new Date(now.getTime() + after_ms);
    // A fact without a condition occurs now, even when it is reported later.
    const occurred_at = (becomes === null ? now : due_at).toISOString();
    return omitUndefined({
      _id: before === undefined ? callback_id : `${callback_id}:again`,
      resource,
      resource_id,
      name,
      body: omitUndefined({ callback_id, occurred_at, bank_reference, code, reason }),
      becomes,
      autoplay,
      state: 'pending',
      due_at,
      attempts: 0,
      last_error: null,
      done_at: null,
    });
  });
}
