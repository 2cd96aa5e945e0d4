import type { Db } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';

interface Heartbeat {
  _id: string;
  at: Date;
}

const SILENT_MS = 6_000;

export type HeartbeatStore = ReturnType<typeof createHeartbeatStore>;

export function createHeartbeatStore(db: Db) {
  const heartbeats = db.collection<Heartbeat>('worker_heartbeats');
  return {
    ensureIndexes: indexBuilder(heartbeats, [
      { key: { at: 1 }, name: 'expiry', expireAfterSeconds: 60 },
    ]),
    beat: (worker: string, now: Date) =>
      heartbeats.updateOne({ _id: worker }, { $set: { at: now } }, { upsert: true }),
    end: (worker: string) => heartbeats.deleteOne({ _id: worker }),
    alive: async (now: Date): Promise<boolean> =>
      (await heartbeats.findOne({ at: { $gt: new Date(now.getTime() - SILENT_MS) } })) !== null,
  };
}
