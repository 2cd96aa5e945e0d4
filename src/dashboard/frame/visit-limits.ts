import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import type { Route, Viewer } from './route';

const WINDOW_SECONDS = 10;
/** Costs in one window: of a session 500 plain pages, 100 overviews, or twenty exports. */
export const VISIT_COSTS_MAX = { session: 1_000, account: 2_000 } as const;
const COSTS = { get: 2, post: 5 } as const;

export type VisitLimits = ReturnType<typeof createVisitLimits>;

/** @see docs/dashboard.md#environments */
export function createVisitLimits(costsMax: Record<keyof typeof VISIT_COSTS_MAX, number>) {
  const createLimit = (points: number) =>
    new RateLimiterMemory({ points, duration: WINDOW_SECONDS });
  const sessions = createLimit(costsMax.session);
  const accounts = createLimit(costsMax.account);
  return {
    /** @returns seconds to wait before the session is loaded; 0 when admitted */
    findWait: async (session: string): Promise<number> => {
      const used = await sessions.get(session);
      return used !== null && used.consumedPoints > costsMax.session ? toSeconds(used) : 0;
    },
    /** @returns seconds to wait; 0 when admitted */
    count: async (
      { session, account, env }: Pick<Viewer, 'session' | 'account' | 'env'>,
      { method, cost = COSTS[method] }: Pick<Route, 'method' | 'cost'>,
    ): Promise<number> => {
      try {
        await sessions.consume(session, cost);
        await accounts.consume(`${account.id}:${env}`, cost);
        return 0;
      } catch (error) {
        if (!(error instanceof RateLimiterRes)) throw error;
        return toSeconds(error);
      }
    },
  };
}

function toSeconds({ msBeforeNext }: RateLimiterRes): number {
  return Math.max(1, Math.ceil(msBeforeNext / 1_000));
}
