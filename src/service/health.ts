import type { MongoClient } from 'mongodb';
import type { HeartbeatStore } from '../store/heartbeats';
import type { TemporalClient } from '../temporal/client';

export interface HealthDeps {
  mongo: MongoClient;
  temporal: Pick<TemporalClient, 'answers'>;
  heartbeats: Pick<HeartbeatStore, 'alive'>;
  now: () => Date;
}

/** Checks whether Temporal and MongoDB answer and a worker polls. */
export async function checkDependencies({ temporal, mongo, heartbeats, now }: HealthDeps) {
  const [isTemporalUp, isMongoUp, isWorkerUp] = await Promise.all([
    temporal.answers(),
    isUp(mongo.db('admin').command({ ping: 1 }, { timeoutMS: 1_500 })),
    isUp(heartbeats.alive(now())),
  ]);
  return { temporal: isTemporalUp, mongodb: isMongoUp, worker: isWorkerUp };
}

async function isUp(check: Promise<unknown>): Promise<boolean> {
  try {
    return (await check) !== false;
  } catch {
    return false;
  }
}
