import { randomUUID } from 'node:crypto';
import type { Db } from 'mongodb';
import { z } from 'zod';
import type { BankResource } from '../../src/domain/banks/callback';
import type { BankDecision } from '../../src/domain/banks/sandbox';
import { bankReference } from '../../src/service/banks/sandbox';
import type { SandboxReportStore } from '../../src/store/sandbox-reports';

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

/** @see docs/api.md#the-sandbox */
export const QUIET_AMOUNTS = { payment: 66_603, refund: 66_613, payout: 66_623 };

interface Entry {
  _id: string;
  status: string;
  instruction: Effect | null;
}

/** Answer to a dispute, which moves no money. */
interface Answer {
  _id: string;
}

interface Session {
  _id: string;
  reversals: (Effect & { instruction_id: string })[];
}

/** @param db the bank's own database */
export function createSandboxDesk(db: Db, connector: string, reports: SandboxReportStore): Desk {
  return {
    listEffects: async (id) => {
      const books = ['refunds', 'payouts'].map((name) => db.collection<Entry>(name));
      const entries = await Promise.all(books.map((book) => book.findOne({ _id: id })));
      const sessions = db.collection<Session>('sessions');
      const session = await sessions.findOne({ 'reversals.instruction_id': id });
      const reversals = session?.reversals.filter(({ instruction_id }) => instruction_id === id);
      const held = entries.flatMap((entry) =>
        entry?.instruction && !['lost', 'refused'].includes(entry.status) ? entry.instruction : [],
      );
      const answers = await db.collection<Answer>('dispute_answers').find({ _id: id }).toArray();
      const moneyless = answers.map(() => ({ amount: 0, currency: 'EUR' }));
      const all = [...held, ...(reversals ?? []), ...moneyless];
      return all.map(({ amount, currency }) => ({ amount, currency }));
    },
    report: async ({ resource, resource_id, name }) => {
      const callback_id = `check_${randomUUID()}`;
      const at = new Date();
      const bank_reference = bankReference(resource_id);
      const ofDispute = name.startsWith('dispute_') ? { dispute_id: bank_reference } : {};
      const body = { callback_id, occurred_at: at.toISOString(), bank_reference, ...ofDispute };
      const money = { amount: QUIET_AMOUNTS[resource], currency: 'EUR' };
      const decision = { resource, resource_id, name: name as BankDecision['name'] };
      await reports.add({
        _id: callback_id,
        connector,
        ...decision,
        ...money,
        bank_reference,
        body,
        at,
      });
      return true;
    },
  };
}
