import { Refusal } from '../domain/errors';

/** Does a work while there is room for it. */
export type Shedding = <T>(livemode: boolean, work: () => Promise<T>) => Promise<T>;

/**
 * Does a bounded number of creates at once and refuses the others at once, since one that waited for
 * its turn would be answered too late. Sandbox and live are counted apart.
 * @throws Refusal 503 `temporarily_unavailable`
 * @see docs/operations.md#overload
 */
export function createShedding(atOnce: number): Shedding {
  const underWay = { live: 0, sandbox: 0 };
  return async (livemode, work) => {
    const environment = livemode ? 'live' : 'sandbox';
    if (underWay[environment] >= atOnce) {
      throw new Refusal(
        'temporarily_unavailable',
        'Too many creates are under way. Nothing was done: try again, with the same Idempotency-Key.',
      );
    }
    underWay[environment] += 1;
    try {
      return await work();
    } finally {
      underWay[environment] -= 1;
    }
  };
}
