import type { Db } from 'mongodb';

interface ScheduleRun {
  /** Name of the schedule. */
  _id: string;
  succeeded_at: string;
}

/** Last success of each schedule, for the metrics. */
export function createScheduleRunStore(db: Db) {
  const runs = db.collection<ScheduleRun>('schedule_runs');
  return {
    note: (schedule: string, now: Date) =>
      runs.updateOne(
        { _id: schedule },
        { $max: { succeeded_at: now.toISOString() } },
        { upsert: true },
      ),
    list: () => runs.find({}).limit(100).toArray(),
  };
}
