import type { MongoClient } from 'mongodb';
import { ENVIRONMENTS, type Env } from '../../domain/environment';
import type { HeartbeatStore } from '../../store/heartbeats';
import type { TemporalClient } from '../../temporal/client';
import type { EpochGuard } from './epoch';

export interface HealthDeps {
  mongo: MongoClient;
  temporal: Pick<TemporalClient, 'answers'>;
  heartbeats: Pick<HeartbeatStore, 'alive'>;
  now: () => Date;
  epochs?: Pick<EpochGuard, 'fault'> | undefined;
}

export async function checkDependencies({ temporal, mongo, heartbeats, now, epochs }: HealthDeps) {
  const isServed = (environment: Env) => isUp(heartbeats.alive(environment, now()));
  const [isTemporalUp, isMongoUp, ...served] = await Promise.all([
    temporal.answers(),
    isUp(mongo.db('admin').command({ ping: 1 }, { timeoutMS: 1_500 })),
    ...ENVIRONMENTS.map(isServed),
  ]);
  const worker = served.includes(true);
  const parts = { temporal: isTemporalUp, mongodb: isMongoUp, worker };
  // Without any worker, `worker` says enough.
  const unserved = worker ? ENVIRONMENTS.filter((_, index) => served[index] === false) : [];
  return {
    ...parts,
    ...Object.fromEntries(unserved.map((environment) => [`worker_${environment}`, false])),
    ...(epochs?.fault() === undefined ? {} : { reconciled: false }),
  };
}

async function isUp(check: Promise<unknown>): Promise<boolean> {
  try {
    return (await check) !== false;
  } catch {
    return false;
  }
}
