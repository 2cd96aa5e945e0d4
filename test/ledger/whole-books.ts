import { mustNotBeNegative, mustNotBePositive } from '../../src/ledger/postings';
import type { Records } from '../support/records';

export interface WholeBook {
  /** Sum of all legs of an account; minor units. */
  sum(account: string): number;
  /** Kinds of its postings. */
  kinds: string[];
}

/**
 * Expects every posting of a merchant in euros to be balanced, and each kept balance to be the sum
 * of its legs, on its own side of 0.
 */
export async function expectWholeBook({ stores }: Records, account_id: string): Promise<WholeBook> {
  const { postings, books } = stores.ledger.collections;
  const book = `${account_id}:sandbox:EUR`;
  const posted = await postings.find({ book }).toArray();
  const kept = await books.findOne({ _id: book });
  const sums = new Map<string, number>();
  for (const { legs } of posted) {
    expect(legs.reduce((sum, { amount }) => sum + Number(amount), 0)).toBe(0);
    for (const { account, amount } of legs) {
      sums.set(account, (sums.get(account) ?? 0) + Number(amount));
    }
  }
  for (const [account, sum] of sums) {
    expect([account, at(kept, account)]).toEqual([account, sum]);
    if (mustNotBeNegative(account)) expect([account, Math.max(sum, 0)]).toEqual([account, sum]);
    if (mustNotBePositive(account)) expect([account, Math.min(sum, 0)]).toEqual([account, sum]);
  }
  return { sum: (account) => sums.get(account) ?? 0, kinds: posted.map(({ kind }) => kind) };
}

function at(value: unknown, path: string): unknown {
  return path.split('.').reduce((inner: unknown, name) => Object(inner)[name], value);
}
