import type { Db } from 'mongodb';
import type { CallbackResource } from '../domain/banks/callback';

export interface ScheduleRun {
  /** Schedule, or walk. */
  _id: string;
  succeeded_at?: string;
  walk?: AuditWalk;
  /** Time before which the retention may have deleted events. */
  events_before?: string;
}

export interface AuditWalk {
  /** Place from which the walk over everything goes on; null at its beginning. */
  place: { kind: CallbackResource; after: string } | null;
  /** Bounded ids that earlier runs have found. */
  orphans: string[];
}

/** Walk over everything in progress, which may take several runs. */
export const AUDIT_WALK = 'audit_walk';

/** Run that has the bound of the deleted events. */
export const RETENTION_RUN = 'retention';

export function createScheduleRunStore(db: Db) {
  const runs = db.collection<ScheduleRun>('schedule_runs');
  return {
    note: (schedule: string, now: Date) =>
      runs.updateOne(
        { _id: schedule },
        { $max: { succeeded_at: now.toISOString() } },
        { upsert: true },
      ),
    /** @param before ISO 8601 */
    noteEventsDeleted: (before: string) =>
      runs.updateOne({ _id: RETENTION_RUN }, { $max: { events_before: before } }, { upsert: true }),
    list: async (): Promise<{ schedule: string; succeeded_at: string }[]> =>
      (await runs.find({}).limit(100).toArray()).flatMap(({ _id: schedule, succeeded_at }) =>
        succeeded_at === undefined ? [] : [{ schedule, succeeded_at }],
      ),
    readWalk: async (): Promise<AuditWalk> =>
      (await runs.findOne({ _id: AUDIT_WALK }))?.walk ?? { place: null, orphans: [] },
    storeWalk: (walk: AuditWalk) =>
      runs.updateOne({ _id: AUDIT_WALK }, { $set: { walk } }, { upsert: true }),
    lastSuccess: async (schedule: string): Promise<string | undefined> =>
      (await runs.findOne({ _id: schedule }))?.succeeded_at,
  };
}
