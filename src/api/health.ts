import type Router from '@koa/router';
import type { MongoClient } from 'mongodb';
import type { HeartbeatStore } from '../store/heartbeats';
import type { TemporalDoor } from '../temporal/door';

export interface HealthDeps {
  mongo: MongoClient;
  temporal: TemporalDoor;
  heartbeats: HeartbeatStore;
  now: () => Date;
}

/** `/healthz`: the process lives. `/readyz`: Temporal and MongoDB answer and a worker polls. */
export function mountHealth(router: Router, deps: HealthDeps): void {
  router.get('/healthz', (ctx) => {
    ctx.body = { status: 'ok' };
  });
  router.get('/readyz', async (ctx) => {
    const [temporal, mongodb, worker] = await Promise.all([
      deps.temporal.answers(),
      answered(deps.mongo.db('admin').command({ ping: 1 }, { timeoutMS: 1_500 })),
      answered(deps.heartbeats.alive(deps.now())),
    ]);
    const parts = { temporal, mongodb, worker };
    const missing = Object.entries(parts)
      .filter(([, up]) => !up)
      .map(([part]) => part);
    ctx.status = missing.length === 0 ? 200 : 503;
    if (missing.length > 0) ctx.set('Retry-After', '1');
    ctx.body = { status: missing.length === 0 ? 'ready' : 'not_ready', missing };
  });
}

async function answered(question: Promise<unknown>): Promise<boolean> {
  try {
    return (await question) !== false;
  } catch {
    return false;
  }
}
