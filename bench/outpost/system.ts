import type { EventDocument } from '../../src/store/events';
import type { Pids } from '../measure/process';

/** Merchants of each system, each with one endpoint. */
export const MERCHANTS = 20;

/** Something that delivers webhooks, as the measurements see it. */
export interface System {
  name: 'outpost' | 'product';
  /** Processes by name; those that are killed, in this order. */
  pids: Pids;
  parts: readonly string[];
  /** Events for each of the product's: both then take about as long. */
  share: number;
  /** Prepares events of all merchants. */
  buildEvents(count: number): EventDocument[];
  /** Resolves once the event is stored and will be delivered; may be repeated. @throws if refused */
  publish(event: EventDocument): Promise<void>;
  /** Waits for what deliveries leave to do, and for processes that are not well after a kill. */
  settle(): Promise<void>;
}

/** Divides events among merchants, in turn. @param build builds so many events of the nth merchant */
export function interleave(
  count: number,
  build: (merchant: number, count: number) => EventDocument[],
): EventDocument[] {
  const each = Math.ceil(count / MERCHANTS);
  const lists = Array.from({ length: MERCHANTS }, (_, merchant) => build(merchant, each));
  return Array.from({ length: count }, (_, n) => {
    const event = lists[n % MERCHANTS]?.[Math.floor(n / MERCHANTS)];
    if (event === undefined) throw new Error(`There is no event ${n}.`);
    return event;
  });
}
