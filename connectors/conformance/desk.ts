import { z } from 'zod';
import type { BankResource } from '../../src/domain/callback/callback';

const TIMEOUT_MS = 10_000;

/** Money held or moved for one instruction; minor units. */
const Effects = z.object({
  effects: z.array(z.object({ amount: z.int(), currency: z.string() })),
});
export type Effect = z.infer<typeof Effects>['effects'][number];

interface BankEvent {
  resource: BankResource;
  resource_id: string;
  name: string;
}

export interface Desk {
  listEffects: (id: string) => Promise<Effect[]>;
  /** @returns false if the bank cannot */
  report: (event: BankEvent) => Promise<boolean>;
}

/** @see docs/connectors.md#check-a-connector */
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
