import type { Collection, Db } from 'mongodb';
import { type MissingIndexes, makeIndexes } from '../base/mongo-indexes';

/** Sign of life that a polling worker gives every few seconds. */
interface Heartbeat {
  _id: string;
  at: Date;
}

/** Silence after which a worker counts as dead. */
const SILENT_MS = 6_000;

export type HeartbeatStore = ReturnType<typeof createHeartbeatStore>;

export function createHeartbeatStore(db: Db) {
  const heartbeats: Collection<Heartbeat> = db.collection<Heartbeat>('worker_heartbeats');
  return {
    ensureIndexes: (missing?: MissingIndexes) =>
      makeIndexes(
        heartbeats,
        [{ key: { at: 1 }, name: 'expiry', expireAfterSeconds: 60 }],
        missing,
      ),
    beat: (worker: string, now: Date) =>
      heartbeats.updateOne({ _id: worker }, { $set: { at: now } }, { upsert: true }),
    end: (worker: string) => heartbeats.deleteOne({ _id: worker }),
    /** Whether some worker polls. */
    alive: async (now: Date): Promise<boolean> =>
      (await heartbeats.findOne({ at: { $gt: new Date(now.getTime() - SILENT_MS) } })) !== null,
  };
}
