import type { Db } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';
import { ENVIRONMENTS, type Env } from '../domain/environment';

interface Heartbeat {
  _id: string;
  at: Date;
  environments: readonly Env[];
}

const SILENT_MS = 6_000;

export type HeartbeatStore = ReturnType<typeof createHeartbeatStore>;

export function createHeartbeatStore(db: Db) {
  const heartbeats = db.collection<Heartbeat>('worker_heartbeats');
  return {
    ensureIndexes: indexBuilder(heartbeats, [
      { key: { at: 1 }, name: 'expiry', expireAfterSeconds: 60 },
    ]),
    beat: (worker: string, now: Date, environments: readonly Env[] = ENVIRONMENTS) =>
      heartbeats.updateOne({ _id: worker }, { $set: { at: now, environments } }, { upsert: true }),
    end: (worker: string) => heartbeats.deleteOne({ _id: worker }),
    alive: async (environment: Env, now: Date): Promise<boolean> => {
      const at = { $gt: new Date(now.getTime() - SILENT_MS) };
      return (await heartbeats.findOne({ at, environments: environment })) !== null;
    },
  };
}
