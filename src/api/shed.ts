import { Refusal } from '../domain/errors';

export type Shedding = <T>(livemode: boolean, work: () => Promise<T>) => Promise<T>;

/**
 * Refuses creates beyond the limit immediately, since a waiting one would be too late. Sandbox and
 * live are counted separately.
 * @throws Refusal 503 `temporarily_unavailable`
 * @see docs/operations.md#overload
 */
export function createShedding(atOnce: number): Shedding {
  const running = { live: 0, sandbox: 0 };
  return async (livemode, work) => {
    const environment = livemode ? 'live' : 'sandbox';
    if (running[environment] >= atOnce) {
      throw new Refusal(
        'temporarily_unavailable',
        'Too many creates are under way. Nothing was done: try again, with the same Idempotency-Key.',
      );
    }
    running[environment] += 1;
    try {
      return await work();
    } finally {
      running[environment] -= 1;
    }
  };
}
