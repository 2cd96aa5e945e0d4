import type { Logger } from '../../src/base/log';
import {
  type LineMovement,
  type SepaBook,
  type SepaLine,
  type SepaPayment,
  shortenId,
} from '../../src/service/banks/sepa/book';
import { findFact, pickReading } from './apply';
import type { Credit, FileSum, Mentioning, Movement } from './messages';

interface ResolveDeps {
  book: Pick<SepaBook, 'lines' | 'files' | 'payments'>;
  log: Pick<Logger, 'error'>;
}

/** States of payouts that a file may pay. */
const CARRIED: SepaLine['state'][] = ['in_file', 'waiting', 'booked', 'returned'];
const FILES_MAX = 10_000;

/**
 * Reads a sum for a whole file as a booking of each of its payouts, but of those that had failed.
 * With another sum or number nothing is said of any.
 * @see docs/sepa.md#a-file-booked-as-one-sum
 */
export async function resolveSums(
  { book, log }: ResolveDeps,
  sums: readonly FileSum[],
): Promise<Movement[]> {
  const files = await findFiles(book, sums);
  const movements: Movement[] = [];
  for (const { names, count, kind, ...money } of sums) {
    const [file_id, ...others] = names.filter((name) => files.has(name));
    if (file_id === undefined || others.length > 0) continue;
    const lines = await book.lines.find({ file_id, state: { $in: CARRIED } }).toArray();
    const amount = lines.reduce((sum, line) => sum + line.amount, 0);
    const read = pickReading(money, { amount, currency: 'EUR' });
    const isWhole = read.amount === amount && read.currency === 'EUR';
    const isCounted = count === null || count === lines.length;
    if (!isWhole || !isCounted || (kind !== 'booked' && kind !== 'debit_reversed')) {
      log.error({ file_id, count }, 'the bank has booked a sum that is not that of its file');
      continue;
    }
    for (const line of lines) {
      const { _id: payout_id, amount, currency } = line;
      movements.push({ ...money, payout_id, kind, amount, currency, readings: [], code: null });
    }
  }
  return movements;
}

async function findFiles(
  { files }: Pick<SepaBook, 'files'>,
  sums: readonly FileSum[],
): Promise<Set<string>> {
  const names = [...new Set(sums.flatMap((sum) => sum.names))];
  const known = new Set<string>();
  for (let at = 0; at < names.length; at += FILES_MAX) {
    const some = { _id: { $in: names.slice(at, at + FILES_MAX) }, state: { $ne: 'open' as const } };
    const found = await files.find(some, { projection: { _id: 1 } }).toArray();
    for (const { _id } of found) known.add(_id);
  }
  return known;
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
  const isKnown = (each: SepaLine | SepaPayment) =>
    findFact(listFacts(each, kind), pickReading(money, each)) !== undefined;
  const fitting = [...payouts, ...paid].filter(fits);
  if (fitting.some(isKnown)) return undefined;
  const [line, ...lesser] = payouts.filter((each) => fits(each) && isOpen(each, kind));
  const [payment, ...others] = paid.filter((each) => fits(each) && each.credits.length === 0);
  if (lesser.length + others.length > 0) return undefined;
  if (line !== undefined && kind !== null) {
    return { movement: { ...money, payout_id: line._id, kind, code } };
  }
  return payment && { credit: { ...money, reference: payment.reference } };
}

function isOpen({ state, booked, returned }: SepaLine, kind: Mentioning['kind']): boolean {
  if (kind === 'returned') return booked !== null && returned === null;
  return booked === null && (state === 'in_file' || state === 'waiting');
}

function listFacts(each: SepaLine | SepaPayment, kind: Mentioning['kind']): LineMovement[] {
  if ('credits' in each) return each.credits;
  const first = kind === 'booked' ? each.booked : each.returned;
  return [first, ...each.others.filter((other) => other.kind === kind)].filter(
    (fact) => fact !== null,
  );
}
