import { isPending } from '../../src/ledger/entries';
import { mustNotBeNegative, mustNotBePositive, toBigInt } from '../../src/ledger/ledger-accounts';
import { addPending, EXACT, type Sums, sumEntryLines } from '../../src/ledger/pending';
import type { Records } from '../support/records';

export interface WholeBook {
  /** Sum of all entry lines of an account; minor units. */
  sum(account: string): number;
  kinds: string[];
}

/**
 * Expects every entry of a merchant in euros to be balanced, each stored balance to be the sum of
 * the entry lines that were applied, and both that and the sum of all on their own side of 0.
 */
export async function expectWholeBook(
  { stores }: { stores: Pick<Records['stores'], 'ledger'> },
  account_id: string,
): Promise<WholeBook> {
  const { collections } = stores.ledger;
  const book = `${account_id}:sandbox:EUR`;
  const entries = await collections.entries.find({ book }, EXACT).toArray();
  const states = await collections.states.find({ book, pending: true }, EXACT).toArray();
  const isPendingById = new Set(states.map(({ _id }) => _id));
  const pending = entries.filter(({ _id }) => isPendingById.has(_id));
  expect(sumEntryLines(states)).toEqual(sumEntryLines(pending));
  for (const { kind, lines, fee = 0, balance_account } of entries) {
    expect(total(lines)).toBe(0);
    const fees = lines.filter(({ account }) => account === 'income.acquirer_fees');
    if (fees.length === 0) continue;
    const main = lines.filter(({ account }) => account === 'balances.main.available');
    // Of a dispute's fee, the balance transaction has what the balance held; it comes back whole.
    const borne =
      kind === 'payment_dispute_opened' ? Math.min(total(fees), -total(main)) : total(fees);
    const expected = kind === 'payment_dispute_won' ? 0 : Math.max(borne, 0);
    expect([balance_account ?? 'main', Number(fee)]).toEqual(['main', expected]);
  }
  for (const entry of pending) expect(isPending(entry)).toBe(true);
  const applied = sumEntryLines(entries.filter((entry) => !pending.includes(entry)));
  const balances = addPending(await collections.books.findOne({ _id: book }, EXACT));
  expect(sorted(balances)).toEqual(sorted(applied));
  const sums = sumEntryLines(entries);
  expectOnTheirSide(applied);
  expectOnTheirSide(sums);
  return {
    sum: (account) => Number(sums.get(account) ?? 0n),
    kinds: entries.map(({ kind }) => kind),
  };
}

function total(lines: readonly { amount: unknown }[]): number {
  return lines.reduce((sum, { amount }) => sum + Number(toBigInt(amount)), 0);
}

function sorted(balances: ReadonlyMap<string, unknown>): [string, unknown][] {
  return [...balances].sort(([one], [other]) => (one < other ? -1 : 1));
}

function expectOnTheirSide(sums: Sums): void {
  for (const [account, sum] of sums) {
    const isPassed =
      (mustNotBeNegative(account) && sum < 0n) || (mustNotBePositive(account) && sum > 0n);
    expect([account, sum, isPassed]).toEqual([account, sum, false]);
  }
}
