import type Router from '@koa/router';
import { checkDependencies, type HealthDeps } from '../service/installation/health';

/**
 * `/healthz`: the process runs. `/readyz`: Temporal and MongoDB answer, a worker polls, and the
 * process is not stopping; `/readyz?only=api` checks only the process.
 */
export function mountHealth(
  router: Router,
  deps: HealthDeps & { stopping?: AbortSignal | undefined },
): void {
  router.get('/healthz', (ctx) => {
    ctx.body = { status: 'ok' };
  });
  // Unauthenticated callers share one check, however often they request it.
  let pendingCheck: ReturnType<typeof checkDependencies> | undefined;
  const checkOnce = () => {
    pendingCheck ??= checkDependencies(deps).finally(() => {
      pendingCheck = undefined;
    });
    return pendingCheck;
  };
  router.get('/readyz', async (ctx) => {
    const api = deps.stopping?.aborted !== true;
    const parts = ctx.query['only'] === 'api' ? { api } : { ...(await checkOnce()), api };
    const missing = Object.entries(parts)
      .filter(([, up]) => !up)
      .map(([part]) => part);
    ctx.status = missing.length === 0 ? 200 : 503;
    if (missing.length > 0) ctx.set('Retry-After', '1');
    ctx.body = { status: missing.length === 0 ? 'ready' : 'not_ready', missing };
  });
}
