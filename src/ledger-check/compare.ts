import {
  type BookDocument,
  bookId,
  type EntryStateDocument,
  isPending,
  operationId,
} from '../ledger/entries';
import { ENTRY_LINES } from '../ledger/entry-lines';
import { mustNotBeNegative, toBigInt } from '../ledger/ledger-accounts';
import { addPending, type Sums } from '../ledger/pending';
import { findClearing } from '../ledger/uncleared';
import { SANDBOX_CONNECTOR } from '../routing';

export const CHECKS = {
  posting_unbalanced: 'the lines of an entry do not sum to 0',
  posting_misnamed: 'an entry is not named by its kind and resource',
  posting_unknown: 'an entry is of a kind that does not exist',
  entry_misplaced: 'an entry of a bank account is in a book of a merchant, or the other way round',
  posting_wrongly_open: 'an entry is pending, and is of a kind that never is',
  entry_state_differs:
    'what is pending of an entry, or its statement line should say, is not what the entry says',
  posting_behind_checkpoint: 'a book has more entries in the range of a checkpoint than it counted',
  checkpoint_differs: 'the entries in the range of a checkpoint have changed',
  checkpoint_broken: 'a checkpoint does not follow from the one before it',
  checkpoint_not_as_kept: 'a checkpoint is not the one that --against holds',
  sandbox_in_live: 'an entry in a live book moves money of the sandbox bank',
  balance_differs: 'a stored balance is not the sum of its lines, or one of the two is missing',
  balance_negative: 'a balance that must not be negative is',
  book_unbalanced: 'the balances of a book do not sum to 0',
  book_misnamed: 'a book is not named by its account, environment and currency',
  posting_missing: 'a resource lacks an entry that its state requires',
  posting_differs: 'an entry has another amount, account or book than its resource',
  posting_extra: 'a resource has an entry that its state does not allow',
  resource_missing: 'an entry is about a resource that does not exist',
  status_unknown: 'a resource is in a state that does not exist',
  refunded_differs: 'what a payment counts as refunded is not the sum of its refunds',
  refunded_exceeds: 'a payment has more refunded than its amount',
  refund_misplaced: 'a refund is not of a settled payment of its account, currency and bank',
  dispute_differs: 'a dispute took another amount than its transfers',
  dispute_misplaced: 'a dispute is not of a payment of its account, currency and bank',
  disputed_differs: 'what a payment counts as disputed is not the sum of its disputes',
  deposit_differs: 'a deposit counts, or has an amount, other than its movement in the register',
  event_missing: 'a resource lacks the event of a version that it has reached',
  event_without_resource: 'an event is about a resource that does not exist',
  claim_without_resource: 'an idempotency key is done, and its resource does not exist',
  claim_left_open: 'an idempotency key is open, and its resource is written',
} as const satisfies Record<string, string>;

export type Check = keyof typeof CHECKS;

/** Minor units; null where there is nothing. */
type ComparedValue = number | string | null;

export interface Difference {
  check: Check;
  subject: string;
  /** Path of a balance, kind or id of an entry, or field; null: all of it. */
  part: string | null;
  expected: ComparedValue;
  found: ComparedValue;
}

/** Fields as they are read, which may hold anything. */
export interface EntryRow {
  _id: string;
  book: string;
  kind: string;
  resource_id: string;
  step?: string;
  at?: string;
  written_at?: string;
  value_date?: string;
  lines?: readonly { account: string; amount: unknown }[];
  bank_day?: string;
  bank_amount?: unknown;
  bank_reference?: string;
}

export interface BookRow {
  _id: string;
  stored: BookDocument | null;
  pending: Sums;
  lineSums: Sums;
}

/** Matches their books, too. */
export const BANK_KIND = /^bank_/;
const BANK_BOOK = /^ba_/;
const SANDBOX_CLEARING = `clearing.${SANDBOX_CONNECTOR}`;

export function compareEntry(entry: EntryRow) {
  const { _id, book, kind, resource_id, step, lines = [] } = entry;
  const sum = lines.some(({ amount }) => toBigInt(amount) === undefined)
    ? 'not whole'
    : total(lines.map(({ amount }) => amount));
  const name = operationId({ kind, resource_id, step });
  const isUnknown = !Object.hasOwn(ENTRY_LINES, kind);
  const isLive = book.split(':')[1] === 'live';
  const isMisplaced = isLive && lines.some(({ account }) => account === SANDBOX_CLEARING);
  const isStrange = BANK_KIND.test(kind) !== BANK_BOOK.test(book);
  return [
    ...compareValues('posting_unbalanced', _id, null, 0n, sum),
    ...compareValues('posting_misnamed', _id, null, name, _id),
    ...(isUnknown ? [difference('posting_unknown', _id, 'kind', null, kind)] : []),
    ...(isStrange ? [difference('entry_misplaced', _id, 'book', null, book)] : []),
    ...(isMisplaced ? [difference('sandbox_in_live', _id, SANDBOX_CLEARING, null, book)] : []),
  ];
}

/** Compares what changes about an entry with the entry itself. */
export function compareState(entry: EntryRow, state: EntryStateDocument | undefined): Difference[] {
  const { _id, kind, lines = [], bank_day } = entry;
  const { pending, uncleared, cleared } = state ?? {};
  const describe = (each: EntryRow['lines'] = []) =>
    each.map(({ account, amount }) => `${account} ${amount}`).join(', ');
  const isWronglyPending = pending !== undefined && !isPending({ kind, lines });
  const line = { day: state?.bank_day, amount: state?.bank_amount, name: state?.bank_reference };
  const expected = { day: bank_day, amount: entry.bank_amount, name: entry.bank_reference };
  const connector = bank_day === undefined ? undefined : findClearing(lines)?.connector;
  const at = [uncleared, cleared].filter((each) => each !== undefined);
  return [
    ...(isWronglyPending
      ? [difference('posting_wrongly_open', _id, 'pending', null, pending)]
      : []),
    ...compareTexts(_id, 'lines', pending ? describe(lines) : '', describe(state?.lines)),
    ...compareTexts(_id, 'connector', connector ?? '', at.join(', ')),
    ...(connector === undefined || state === undefined
      ? []
      : compareTexts(_id, 'line', describeLine(expected), describeLine(line))),
  ];
}

function describeLine({ day, amount, name }: { day: unknown; amount: unknown; name: unknown }) {
  return `${day} ${amount} ${name ?? ''}`.trim();
}

function compareTexts(subject: string, part: string, expected: string, actual: string) {
  return compareValues('entry_state_differs', subject, part, expected, actual);
}

/** A balance of 0 must have lines, too. */
export function compareBook({ _id, stored, pending, lineSums }: BookRow): Difference[] {
  const balances = addPending(stored, pending);
  const accounts = [...new Set([...balances.keys(), ...lineSums.keys()])].sort();
  return [
    ...(stored === null ? [] : compareValues('book_misnamed', _id, null, bookId(stored), _id)),
    ...accounts.flatMap((account) => {
      const balance = balances.get(account);
      const isNegative = mustNotBeNegative(account) && (toBigInt(balance) ?? 0n) < 0n;
      return [
        ...compareValues('balance_differs', _id, account, lineSums.get(account), balance),
        ...(isNegative
          ? [difference('balance_negative', _id, account, 'at least 0', balance)]
          : []),
      ];
    }),
    ...compareValues('book_unbalanced', _id, null, 0n, total([...balances.values()])),
  ];
}

export function compareValues(
  check: Check,
  subject: string,
  part: string | null,
  expected: unknown,
  actual: unknown,
): Difference[] {
  const integer = toBigInt(actual);
  const isSame =
    integer === undefined
      ? typeof actual === 'string' && actual === expected
      : integer === toBigInt(expected);
  return isSame ? [] : [difference(check, subject, part, expected, actual)];
}

export function difference(
  check: Check,
  subject: string,
  part: string | null,
  expected: unknown,
  actual: unknown,
): Difference {
  return {
    check,
    subject,
    part,
    expected: toComparedValue(expected),
    found: toComparedValue(actual),
  };
}

function toComparedValue(value: unknown): ComparedValue {
  if (value === undefined || value === null) return null;
  const number = Number(toBigInt(value));
  return Number.isSafeInteger(number) ? number : String(value);
}

/** Other values than integers count as 0, and are reported with their balance. */
function total(amounts: readonly unknown[]): bigint {
  return amounts.reduce<bigint>((sum, amount) => sum + (toBigInt(amount) ?? 0n), 0n);
}
