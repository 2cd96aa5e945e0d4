import type { BookDocument } from '../book';
import { bookId, LEGS, mustNotBeNegative, type NewPosting, operationId } from '../postings';

/** Kinds of difference, in the words of the report. */
export const CHECKS = {
  posting_unbalanced: 'the legs of a posting do not sum to 0',
  posting_misnamed: 'a posting is not named by its kind and resource',
  posting_unknown: 'a posting is of a kind that does not exist',
  balance_differs: 'a kept balance is not the sum of its legs, or one of the two is missing',
  balance_negative: 'a balance that must not be negative is',
  book_unbalanced: 'the balances of a book do not sum to 0',
  book_misnamed: 'a book is not named by its account, environment and currency',
  posting_missing: 'a resource lacks a posting that its state calls for',
  posting_differs: 'a posting has another amount, account or book than its resource',
  posting_extra: 'a resource has a posting that its state does not call for',
  resource_missing: 'a posting is about a resource that is not there',
  refunded_differs: 'what a payment counts as refunded is not the sum of its refunds',
  refunded_exceeds: 'a payment has more refunded than its amount',
} as const satisfies Record<string, string>;

export type Check = keyof typeof CHECKS;

/** Value as the report shows it: money in minor units, null where there is nothing. */
type ComparedValue = number | string | null;

/** Difference between the ledger and the resources, or within the ledger. */
export interface Difference {
  check: Check;
  /** Id of the posting, book or resource. */
  subject: string;
  /** Part at fault: the path of a balance, a kind or id of a posting, a field; null: all of it. */
  part: string | null;
  expected: ComparedValue;
  found: ComparedValue;
}

/** Posting that the server found to be faulty. */
export interface PostingRow extends Pick<NewPosting, 'kind' | 'resource_id'> {
  _id: string;
  /** Sum of all legs. */
  sum: unknown;
}

/** Book as it is kept, and the sums of the legs posted to it; either may be missing. */
export interface BookRow {
  _id: string;
  kept: BookDocument | null;
  posted: { account: string; sum: unknown }[];
}

/** Pure: faults of a posting by itself. */
export function comparePosting(posting: PostingRow): Difference[] {
  const { _id, kind, sum } = posting;
  return [
    ...unlessSame('posting_unbalanced', _id, null, 0, sum),
    ...unlessSame('posting_misnamed', _id, null, operationId(posting), _id),
    ...(Object.hasOwn(LEGS, kind) ? [] : [difference('posting_unknown', _id, 'kind', null, kind)]),
  ];
}

/** Pure: faults in the balances of one book; a balance of 0 must have its legs, too. */
export function compareBook({ _id, kept, posted }: BookRow): Difference[] {
  const balances = new Map(kept === null ? [] : balancesOf(kept));
  const sums = new Map(posted.map(({ account, sum }): [string, unknown] => [account, sum]));
  const accounts = [...new Set([...balances.keys(), ...sums.keys()])].sort();
  return [
    ...(kept === null ? [] : unlessSame('book_misnamed', _id, null, bookId(kept), _id)),
    ...accounts.flatMap((account) => {
      const balance = balances.get(account);
      const negative = mustNotBeNegative(account) && Number(balance) < 0;
      return [
        ...unlessSame('balance_differs', _id, account, sums.get(account), balance),
        ...(negative ? [difference('balance_negative', _id, account, 'at least 0', balance)] : []),
      ];
    }),
    ...unlessSame('book_unbalanced', _id, null, 0, total([...balances.values()])),
  ];
}

/** Differences of two values: none where both are the same text or the same exact integer. */
export function unlessSame(
  check: Check,
  subject: string,
  part: string | null,
  expected: unknown,
  found: unknown,
): Difference[] {
  const isExact = typeof found === 'string' || Number.isSafeInteger(found);
  if (isExact && found === expected) return [];
  return [difference(check, subject, part, expected, found)];
}

export function difference(
  check: Check,
  subject: string,
  part: string | null,
  expected: unknown,
  found: unknown,
): Difference {
  return { check, subject, part, expected: shown(expected), found: shown(found) };
}

/** Shows an exact integer as it is, and any other number as text. */
function shown(value: unknown): ComparedValue {
  if (value === undefined || value === null) return null;
  return typeof value === 'number' && Number.isSafeInteger(value) ? value : String(value);
}

/** Balances by their paths: all that a book holds beside the fields that name it. */
function balancesOf({ _id, account_id, livemode, currency, ...rest }: BookDocument) {
  return [...leavesOf(rest, '')];
}

function* leavesOf(value: unknown, path: string): Generator<[path: string, value: unknown]> {
  if (typeof value !== 'object' || value === null || '_bsontype' in value) {
    yield [path, value];
    return;
  }
  for (const [name, inner] of Object.entries(value)) {
    yield* leavesOf(inner, path === '' ? name : `${path}.${name}`);
  }
}

/** Sums in integers of any size; other values are reported with their balance and count as 0. */
function total(amounts: readonly unknown[]): number | string {
  const sum = amounts.reduce<bigint>((to, amount) => to + wholeOf(amount), 0n);
  return Number.isSafeInteger(Number(sum)) ? Number(sum) : String(sum);
}

function wholeOf(amount: unknown): bigint {
  return typeof amount === 'number' && Number.isSafeInteger(amount) ? BigInt(amount) : 0n;
}
