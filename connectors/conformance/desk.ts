import { z } from 'zod';
import type { BankResource } from '../../src/domain/callback/callback';

const TIMEOUT_MS = 10_000;

/** Money that a bank holds, or has moved, for one instruction. Minor units. */
const Effects = z.object({
  effects: z.array(z.object({ amount: z.int(), currency: z.string() })),
});
export type Effect = z.infer<typeof Effects>['effects'][number];

/** Event that a bank is to have, and to report as always. */
interface BankEvent {
  resource: BankResource;
  resource_id: string;
  /** Name of the callback that has to come of it. */
  name: string;
}

/** Desk of a fake bank, at which a check sees what it holds and makes it act. */
export interface Desk {
  /** Lists what the bank has executed for the ID that it was given. */
  listEffects: (id: string) => Promise<Effect[]>;
  /** Lets an event happen, also about what the bank was never asked. Returns false if it cannot. */
  report: (event: BankEvent) => Promise<boolean>;
}

/** Reaches a desk over HTTP. @see docs/connectors.md#check-a-connector */
export function createHttpDesk(url: string): Desk {
  const call = async (path: string, init: RequestInit = {}) => {
    const response = await fetch(`${url.replace(/\/+$/, '')}${path}`, {
      ...init,
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    if (response.ok || response.status === 404) return response;
    throw new Error(`The bank’s desk answered ${response.status} to ${path}.`);
  };
  return {
    listEffects: async (id) => {
      const response = await call(`/effects/${encodeURIComponent(id)}`);
      return response.ok ? Effects.parse(await response.json()).effects : [];
    },
    report: async (event) => {
      const headers = { 'Content-Type': 'application/json' };
      const body = JSON.stringify(event);
      return (await call('/reports', { method: 'POST', headers, body })).ok;
    },
  };
}
