import type Router from '@koa/router';
import type { MongoClient } from 'mongodb';
import type { HeartbeatStore } from '../store/heartbeats';
import type { TemporalDoor } from '../temporal/door';

export interface HealthDeps {
  mongo: MongoClient;
  temporal: TemporalDoor;
  heartbeats: HeartbeatStore;
  now: () => Date;
  stopping?: AbortSignal | undefined;
}

/**
 * `/healthz`: the process lives. `/readyz`: Temporal and MongoDB answer, a worker polls, and this
 * process is not about to end; `/readyz?only=api` asks after the process alone.
 */
export function mountHealth(router: Router, deps: HealthDeps): void {
  router.get('/healthz', (ctx) => {
    ctx.body = { status: 'ok' };
  });
  // One look at a time, since strangers may ask as often as they like.
  let asked: ReturnType<typeof askOthers> | undefined;
  const others = () => {
    asked ??= askOthers(deps).finally(() => {
      asked = undefined;
    });
    return asked;
  };
  router.get('/readyz', async (ctx) => {
    const api = deps.stopping?.aborted !== true;
    const parts = ctx.query['only'] === 'api' ? { api } : { ...(await others()), api };
    const missing = Object.entries(parts)
      .filter(([, up]) => !up)
      .map(([part]) => part);
    ctx.status = missing.length === 0 ? 200 : 503;
    if (missing.length > 0) ctx.set('Retry-After', '1');
    ctx.body = { status: missing.length === 0 ? 'ready' : 'not_ready', missing };
  });
}

async function askOthers({ temporal, mongo, heartbeats, now }: HealthDeps) {
  const [isTemporalUp, isMongoUp, isWorkerUp] = await Promise.all([
    temporal.answers(),
    answered(mongo.db('admin').command({ ping: 1 }, { timeoutMS: 1_500 })),
    answered(heartbeats.alive(now())),
  ]);
  return { temporal: isTemporalUp, mongodb: isMongoUp, worker: isWorkerUp };
}

async function answered(question: Promise<unknown>): Promise<boolean> {
  try {
    return (await question) !== false;
  } catch {
    return false;
  }
}
