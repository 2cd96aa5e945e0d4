import type { ClientSession } from 'mongodb';
import { parseBookCurrency } from '../domain/crypto/assets';
import type { createBankAccountStore } from './bank-accounts';
import type { createStatementStore } from './statements';

interface ProofStores {
  bankAccounts: Pick<ReturnType<typeof createBankAccountStore>, 'list'>;
  statements: Pick<ReturnType<typeof createStatementStore>, 'closedUntil'>;
}

export type ReadProof = (connectors: readonly string[], currency: string) => Promise<string | null>;

/**
 * Reads the last day until which every day of every bank account of all connectors in a currency is
 * closed: `YYYY-MM-DD`. Null without a connector, for an asset, and where a connector has no bank
 * account or no closed day. Reads each connector and currency once.
 * @see docs/statements.md#what-is-proved
 */
export function createProof(
  { bankAccounts, statements }: ProofStores,
  livemode: boolean,
  session?: ClientSession,
): ReadProof {
  const known = new Map<string, string | null>();
  const readDay = async (connector: string, currency: string): Promise<string | null> => {
    const accounts = await bankAccounts.list({ connector, livemode, currency }, session);
    const days: (string | null)[] = [];
    for (const { _id } of accounts) days.push(await statements.closedUntil(_id, session));
    return pickFirst(days);
  };
  return async (connectors, currency) => {
    if (parseBookCurrency(currency) !== undefined) return null;
    const days: (string | null)[] = [];
    for (const connector of connectors) {
      const key = `${connector} ${currency}`;
      const day = known.get(key);
      const read = day === undefined ? await readDay(connector, currency) : day;
      known.set(key, read);
      days.push(read);
    }
    return pickFirst(days);
  };
}

function pickFirst(days: readonly (string | null)[]): string | null {
  const sorted = days.flatMap((day) => day ?? []).toSorted();
  return sorted.length === days.length ? (sorted[0] ?? null) : null;
}
