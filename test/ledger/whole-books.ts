import { isPending } from '../../src/ledger/entries';
import { mustNotBeNegative, mustNotBePositive } from '../../src/ledger/insufficient-balance';
import { toBigInt } from '../../src/ledger/integers';
import { addPending, EXACT, type Sums, sumEntryLines } from '../../src/ledger/pending';
import type { Records } from '../support/records';

export interface WholeBook {
  /** Sum of all legs of an account; minor units. */
  sum(account: string): number;
  /** Kinds of its postings. */
  kinds: string[];
}

/**
 * Expects every posting of a merchant in euros to be balanced, each kept balance to be the sum of
 * the legs that were taken in, and both that and the sum of all on their own side of 0.
 */
export async function expectWholeBook(
  { stores }: { stores: Pick<Records['stores'], 'ledger'> },
  account_id: string,
): Promise<WholeBook> {
  const { postings, books } = stores.ledger.collections;
  const book = `${account_id}:sandbox:EUR`;
  const posted = await postings.find({ book }, EXACT).toArray();
  const open = posted.filter((posting) => posting.open);
  for (const { legs } of posted) expect(total(legs)).toBe(0);
  for (const posting of open) expect(isPending(posting)).toBe(true);
  const taken = sumEntryLines(posted.filter((posting) => !posting.open));
  const kept = addPending(await books.findOne({ _id: book }, EXACT));
  expect(sorted(kept)).toEqual(sorted(taken));
  const sums = sumEntryLines(posted);
  expectOnTheirSide(taken);
  expectOnTheirSide(sums);
  return {
    sum: (account) => Number(sums.get(account) ?? 0n),
    kinds: posted.map(({ kind }) => kind),
  };
}

function total(legs: readonly { amount: unknown }[]): number {
  return legs.reduce((sum, { amount }) => sum + Number(toBigInt(amount)), 0);
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
