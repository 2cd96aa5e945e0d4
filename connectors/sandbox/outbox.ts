import { randomUUID } from 'node:crypto';
import type { ClientSession, Collection, Db } from 'mongodb';
import type { BankCallback, BankResource } from '../../src/domain/banks/callback';
import { omitUndefined } from '../../src/domain/defined';
import type { SandboxReport } from '../../src/store/sandbox-reports';
import type { BankClockAdvance } from '../contract/clock';
import { bringForward, LEASE_MS } from './clock';
import type { CallbackByResource, PlannedCallback } from './plan';

export interface CallbackSubject<R extends BankResource = BankResource> {
  resource: R;
  resource_id: string;
}

/** Callback of the bank, written in the transaction of its decision. */
export interface OutboxRow<R extends BankResource = BankResource> extends CallbackSubject<R> {
  /** Has a suffix for a deliberate repeat. */
  _id: string;
  name: CallbackByResource[R]['name'];
  body: BankCallback;
  becomes: CallbackByResource[R]['becomes'] | null;
  /** Yields to a different simulated outcome. */
  autoplay?: true;
  /** `dropped`: its condition never came true, or a simulation was faster. */
  state: 'pending' | 'sent' | 'dropped';
  due_at: Date;
  done_at: Date | null;
  /** Clock offset of the last change of `due_at`, in ms. */
  clock_ms?: number;
}

const KEEP_S = 30 * 86_400;

export type Outbox = ReturnType<typeof createOutbox>;

export function createOutbox(db: Db, now: () => Date) {
  const rows: Collection<OutboxRow> = db.collection('outbox');
  const later = (ms: number) => new Date(now().getTime() + ms);
  return {
    ensureIndexes: () =>
      rows.createIndexes([
        { key: { state: 1, due_at: 1 }, name: 'due' },
        { key: { resource: 1, resource_id: 1, state: 1 }, name: 'resource' },
        { key: { done_at: 1 }, name: 'kept', expireAfterSeconds: KEEP_S },
      ]),
    add: async <R extends BankResource>(
      { resource, resource_id, bank_reference }: CallbackSubject<R> & { bank_reference: string },
      planned: PlannedCallback<R>[],
      session: ClientSession,
    ): Promise<void> => {
      // The driver refuses an empty list.
      if (planned.length === 0) return;
      const at = now();
      const ids = new Map<string, string>();
      const added = planned.map(
        ({ name, after_ms, becomes, repeat, autoplay, ...facts }): OutboxRow<R> => {
          const before = repeat === true ? ids.get(name) : undefined;
          const callback_id = before ?? `cb_${randomUUID()}`;
          ids.set(name, callback_id);
          const due_at = new Date(at.getTime() + after_ms);
          // Without a condition it occurs now, even if it is reported later.
          const occurred_at = (becomes === null ? at : due_at).toISOString();
          return omitUndefined({
            _id: before === undefined ? callback_id : `${callback_id}:again`,
            resource,
            resource_id,
            name,
            body: { callback_id, occurred_at, bank_reference, ...facts },
            becomes,
            autoplay,
            ...newRow(due_at),
          });
        },
      );
      await rows.insertMany(added, { session });
    },
    /** Repeats a simulated callback, should the service not have received it. */
    addReport: async (report: SandboxReport, session: ClientSession): Promise<void> => {
      const { _id, resource, resource_id, name, body } = report;
      const row = {
        resource,
        resource_id,
        name,
        body,
        becomes: null,
        ...newRow(later(LEASE_MS)),
      };
      await rows.updateOne({ _id }, { $setOnInsert: row }, { upsert: true, session });
    },
    /** Leaves what is due to others until the lease ends. */
    lease: async (limit: number): Promise<OutboxRow[]> => {
      const due = await rows
        .find({ state: 'pending', due_at: { $lte: now() } })
        .sort({ due_at: 1 })
        .limit(limit)
        .toArray();
      const leased = { _id: { $in: due.map(({ _id }) => _id) }, state: 'pending' } as const;
      if (due.length > 0) await rows.updateMany(leased, { $set: { due_at: later(LEASE_MS) } });
      return due;
    },
    finish: (ids: string[], state: 'sent' | 'dropped') =>
      rows.updateMany({ _id: { $in: ids }, state: 'pending' }, { $set: { state, done_at: now() } }),
    listPending: (limit: number) =>
      rows.find({ state: 'pending' }).sort({ due_at: 1 }).limit(limit).toArray(),
    /** Applies once for each advance of the clock. */
    bringForward: (ids: string[], advance: BankClockAdvance) =>
      rows.updateMany({ _id: { $in: ids }, state: 'pending' }, [bringForward(advance)]),
    drop: ({ resource, resource_id }: CallbackSubject, session: ClientSession) =>
      rows.updateMany(
        { resource, resource_id, state: 'pending', becomes: { $ne: null } },
        { $set: { state: 'dropped', done_at: now() } },
        { session },
      ),
  };
}

function newRow(due_at: Date) {
  return { state: 'pending', due_at, done_at: null } as const;
}
