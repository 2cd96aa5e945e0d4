import type { Logger } from '../../src/base/log';
import {
  type FilePart,
  type SepaBook,
  type SepaLine,
  type SepaPayment,
  shortenId,
} from '../../src/service/banks/sepa/book';
import type { Credit, FileSum, Mentioning, Movement } from './messages';
import { findFact, pickReading } from './movements';

interface ResolveDeps {
  book: Pick<SepaBook, 'lines' | 'files' | 'payments'>;
  log: Pick<Logger, 'error'>;
}

/** States of payouts that a file may pay. */
const CARRIED: SepaLine['state'][] = ['in_file', 'waiting', 'executed', 'booked', 'returned'];
const FILES_MAX = 10_000;

/**
 * Reads a sum for a whole file as a booking of each of its payouts, but of those that had failed, or
 * as a return of each; so several sums that make up the file. Of another sum or number nothing is said.
 * @see docs/sepa.md#a-file-booked-as-one-sum
 */
export async function resolveSums(
  { book, log }: ResolveDeps,
  sums: readonly FileSum[],
): Promise<Movement[]> {
  const named = [...new Set(sums.flatMap((sum) => sum.names))];
  const files = new Set<string>();
  for (let at = 0; at < named.length; at += FILES_MAX) {
    const some = { _id: { $in: named.slice(at, at + FILES_MAX) }, state: { $ne: 'open' as const } };
    const found = await book.files.find(some, { projection: { _id: 1 } }).toArray();
    for (const { _id } of found) files.add(_id);
  }
  const movements: Movement[] = [];
  for (const { names, count, kind, ...money } of sums) {
    const [file_id, ...others] = names.filter((name) => files.has(name));
    if (file_id === undefined || others.length > 0) continue;
    const carried = await book.lines.find({ file_id, state: { $in: CARRIED } }).toArray();
    const isBack = kind === 'returned';
    // What has not been booked may have come back instead.
    const lines = isBack && carried.some(({ booked }) => booked === null) ? [] : carried;
    const amount = sumUp(lines);
    const read = pickReading(money, { amount, currency: 'EUR' });
    const isWhole = read.amount === amount && read.currency === 'EUR';
    const isCounted = count === null || count === lines.length;
    const isKnown = isBack || kind === 'booked' || kind === 'debit_reversed';
    const build = ({ _id: payout_id, amount: own, currency }: SepaLine, more: object = {}) => ({
      ...{ ...money, payout_id, kind, amount: own, currency, readings: [], code: null, ...more },
    });
    if (isWhole && isCounted && isKnown) {
      movements.push(...lines.map((line) => build(line)));
      continue;
    }
    const parts = kind === 'booked' ? await addPart(book, file_id, { ...money, count }) : [];
    const booked = nameParts(lines, parts);
    for (const [line, { bank_reference, value_date }] of booked) {
      movements.push(build(line, { also: undefined, bank_reference, value_date }));
    }
    if (booked.size > 0) continue;
    log.error({ file_id, count }, 'the bank has booked a sum that is not that of its file');
  }
  return movements;
}

const sumUp = (rows: readonly { amount: number }[]) =>
  rows.reduce((sum, { amount }) => sum + amount, 0);

/** Sums of one file; banks cut it into a few. */
const PARTS_MAX = 20;

/** Stores a part of a file once. @returns all that messages of its kind have */
async function addPart(
  { files }: Pick<SepaBook, 'files'>,
  _id: string,
  { source, bank_reference, amount, currency, count, value_date }: Omit<FileSum, 'names' | 'kind'>,
): Promise<FilePart[]> {
  // A repeat of one without a name would be another.
  if (bank_reference === null || currency !== 'EUR') return [];
  const part: FilePart = { source, bank_reference, amount, count, value_date };
  const known = { $elemMatch: { source, bank_reference } };
  await files.updateOne(
    { _id, sums: { $not: known }, [`sums.${PARTS_MAX - 1}`]: { $exists: false } },
    { $push: { sums: part } },
  );
  const { sums = [] } = (await files.findOne({ _id })) ?? {};
  return sums.filter((each) => each.source === source);
}

/**
 * Names the booking of each payout, where the parts make up the file: without a reference where more
 * than one would do.
 */
function nameParts(
  lines: readonly SepaLine[],
  parts: readonly FilePart[],
): Map<SepaLine, Pick<FilePart, 'value_date'> & { bank_reference: string | null }> {
  const counted = parts.flatMap(({ count }) => count ?? []);
  const count = counted.reduce((sum, each) => sum + each, 0);
  const isCounted = counted.length < parts.length || count === lines.length;
  if (parts.length < 2 || sumUp(parts) !== sumUp(lines) || !isCounted) return new Map();
  const [first, ...more] = parts;
  const isSameDay = more.every(({ value_date }) => value_date === first?.value_date);
  const unnamed = {
    bank_reference: null,
    value_date: isSameDay ? (first?.value_date ?? null) : null,
  };
  const [only, ...others] = distribute(lines, parts);
  const isOnly = only !== undefined && others.length === 0;
  return new Map(lines.map((line, at) => [line, (isOnly ? only[at] : undefined) ?? unnamed]));
}

/** Payouts of which it is tried in which of several sums they are. */
const TRIED_MAX = 12;

/** Lists up to two ways to put each payout into one of the sums. */
function distribute(lines: readonly SepaLine[], parts: readonly FilePart[]): FilePart[][] {
  if (lines.length > TRIED_MAX) return [];
  const found: FilePart[][] = [];
  const left = parts.map(({ amount }) => amount);
  const chosen: FilePart[] = [];
  const put = (at: number): void => {
    const line = lines[at];
    if (line === undefined) {
      if (left.every((rest) => rest === 0)) found.push([...chosen]);
      return;
    }
    for (const [index, part] of parts.entries()) {
      if (found.length > 1 || (left[index] ?? 0) < line.amount) continue;
      left[index] = (left[index] ?? 0) - line.amount;
      chosen.push(part);
      put(at + 1);
      chosen.pop();
      left[index] = (left[index] ?? 0) + line.amount;
    }
  };
  put(0);
  return found;
}

/**
 * Finds the one open payout or payment that a text names, and whose amount was moved. A booking that
 * one of them has, or that names one of ours in its own field, is about no other.
 * @see docs/sepa.md#references-in-free-text
 */
export async function resolveMention(
  { book }: ResolveDeps,
  { mentions, payout_id, reference, kind, code, ...money }: Mentioning,
): Promise<{ movement: Movement } | { credit: Credit } | undefined> {
  const { lines, payments, files } = book;
  const ids = [...mentions];
  if (await files.findOne({ _id: { $in: ids.map(shortenId) } })) return undefined;
  if (payout_id !== null && (await lines.findOne({ _id: payout_id }))) return undefined;
  if (reference !== null && (await payments.findOne({ reference }))) return undefined;
  const payouts = kind === null ? [] : await lines.find({ _id: { $in: ids } }).toArray();
  const named = { $or: [{ _id: { $in: ids } }, { reference: { $in: ids } }] };
  const paid = kind === null ? await payments.find(named).toArray() : [];
  const fits = (each: SepaLine | SepaPayment) => {
    const { amount, currency } = pickReading(money, each);
    return amount === each.amount && currency === each.currency;
  };
  const isKnown = (each: SepaLine | SepaPayment) => {
    const first = 'credits' in each || kind === null ? null : each[kind];
    const others =
      'credits' in each ? each.credits : each.others.filter((other) => other.kind === kind);
    const facts = [first, ...others].filter((fact) => fact !== null);
    return findFact(facts, pickReading(money, each)) !== undefined;
  };
  if ([...payouts, ...paid].filter(fits).some(isKnown)) return undefined;
  const isOpen = ({ state, booked, returned }: SepaLine) =>
    kind === 'returned'
      ? booked !== null && returned === null
      : booked === null && (state === 'in_file' || state === 'waiting');
  const [line, ...lesser] = payouts.filter((each) => fits(each) && isOpen(each));
  const [payment, ...others] = paid.filter((each) => fits(each) && each.credits.length === 0);
  if (lesser.length + others.length > 0) return undefined;
  if (line !== undefined && kind !== null) {
    return { movement: { ...money, payout_id: line._id, kind, code } };
  }
  return payment && { credit: { ...money, reference: payment.reference } };
}
