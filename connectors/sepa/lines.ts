import { randomUUID } from 'node:crypto';
import { isDuplicateKey } from '../../src/base/mongo';
import type { PayoutCallbackName } from '../../src/domain/banks/callback';
import { omitUndefined } from '../../src/domain/defined';
import {
  INSTANT_RAIL,
  type LineMovement,
  type SepaBook,
  type SepaLine,
  type SepaPayment,
  shortenId,
} from '../../src/service/banks/sepa/book';
import type { PayoutStore } from '../../src/store/payouts';
import type { CancelAnswer, PayoutInstruction, PayoutLookup } from '../contract/activities';
import type { Report } from '../kit';

const CANCELLED = {
  outcome: 'refused',
  code: 'cancelled',
  message: 'The payout was cancelled before it reached the bank.',
} as const;

type Lines = Pick<SepaBook, 'lines'>;

const HELD_AT_ONCE = 1_000;

/** Puts held payouts that an operator has released, or that match by now, into the open batch. */
export async function takeReleased(
  { lines }: Lines,
  { listVerifications }: Pick<PayoutStore, 'listVerifications'>,
): Promise<void> {
  const $set = { state: 'open', wait_until: null } as const;
  await lines.updateMany({ state: 'unverified', 'verification.result': 'match' }, { $set });
  for (let after = ''; ; ) {
    const held = await lines
      .find({ state: 'unverified', _id: { $gt: after } })
      .sort({ _id: 1 })
      .limit(HELD_AT_ONCE)
      .toArray();
    const last = held.at(-1);
    if (last === undefined) return;
    after = last._id;
    for (const { _id, verification } of await listVerifications(held.map((line) => line._id))) {
      if (verification?.released !== true) continue;
      // A later result needs a release of its own.
      const { checked_at } = verification;
      await lines.updateOne(
        { _id, state: 'unverified', 'verification.checked_at': checked_at },
        { $set },
      );
    }
  }
}

/** A repeat adds nothing. */
export async function addLine(
  { lines }: Lines,
  { payout_id, version, amount, currency, method, livemode }: PayoutInstruction,
  now: Date,
): Promise<void> {
  const line: SepaLine = {
    ...{ _id: payout_id, state: 'open', file_id: null, former_files: [], added_at: now },
    wait_until: null,
    ...{ version, amount, currency, method, livemode },
    ...{ failure: null, duplicate: null, booked: null, returned: null, others: [] },
    ...{ unreported: false, report_batch: null },
  };
  try {
    await lines.insertOne(line);
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
  }
}

export function toInstruction(line: SepaLine): PayoutInstruction {
  const { _id: payout_id, version, amount, currency, method, livemode } = line;
  return { payout_id, version, amount, currency, method, livemode };
}

/** A payout in the book has arrived, whatever the bank says. */
export async function lookUpLine({ lines }: Lines, payout_id: string): Promise<PayoutLookup> {
  const line = await lines.findOne({ _id: payout_id });
  if (line === null) return { outcome: 'not_found' };
  if (line.state === 'cancelled' || line.state === 'dropped') return CANCELLED;
  const bank_reference = line.booked?.bank_reference ?? shortenId(payout_id);
  // An answer names no amount: a different one is left to the report.
  const isSent = line.booked?.amount === line.amount && line.booked.currency === line.currency;
  // Its file calls an operator.
  const watched = line.method === INSTANT_RAIL ? ({ watched: true } as const) : {};
  return { outcome: isSent ? 'sent' : 'submitted', bank_reference, ...watched };
}

/** Cancels unless a file may carry the payout: the same write takes it out of the batch. */
export async function cancelLine(
  { lines, files }: Pick<SepaBook, 'lines' | 'files'>,
  payout_id: string,
): Promise<CancelAnswer> {
  const waiting = await lines.findOne({ _id: payout_id, state: 'waiting' });
  const file = waiting && (await files.findOne({ _id: waiting.file_id ?? '' }));
  // Its refusal was not all that the bank has said about it.
  const isUnexecuted = waiting?.withdrawn !== undefined && waiting.duplicate === null;
  if (file?.may_be_executed && !isUnexecuted) return { outcome: 'too_late' };
  const cancelled = await lines.findOneAndUpdate(
    { _id: payout_id, state: { $in: ['open', 'waiting', 'unverified'] } },
    { $set: { state: 'cancelled', file_id: null } },
  );
  if (cancelled !== null) return { outcome: 'cancelled' };
  const line = await lines.findOne({ _id: payout_id });
  switch (line?.state) {
    case undefined:
    case 'assigned':
      // Its file is being written, or not: the look-up decides.
      return { outcome: 'unknown' };
    case 'cancelled':
    case 'dropped':
    case 'failed':
      return { outcome: 'cancelled' };
    default:
      return { outcome: 'too_late' };
  }
}

const BATCH_MAX = 200;

const RETURNED = 'The recipient’s bank sent the transfer back.';
const DUPLICATE = 'The bank says that the transfer had arrived before.';

type Kind = SepaLine['others'][number]['kind'];

type Book = Pick<SepaBook, 'lines' | 'payments'>;

/** Ends the delivery, except where a new fact came since. */
export async function endReports({ lines, payments }: Book, batch: string): Promise<void> {
  const ended = { $set: { unreported: false, report_batch: null } };
  await lines.updateMany({ report_batch: batch, unreported: true }, ended);
  await payments.updateMany({ report_batch: batch, unreported: true }, ended);
}

/** Gives each fact one callback ID. */
export async function collectReports({ lines, payments }: Book) {
  const report_batch = randomUUID();
  const reports: Report[] = [];
  const payouts = await lines.find({ unreported: true }).limit(BATCH_MAX).toArray();
  for (const line of payouts) {
    const { _id, failure, duplicate, verification, executed, booked, returned, others } = line;
    const none = { $exists: false };
    const may = { verification: verification ?? none, executed: executed ?? none };
    const facts = { failure, duplicate, ...may, booked, returned, others };
    const marked = await lines.updateOne(
      { _id, unreported: true, ...facts },
      { $set: { report_batch } },
    );
    if (marked.matchedCount > 0) reports.push(...buildReports(line));
  }
  const paid = await payments.find({ unreported: true }).limit(BATCH_MAX).toArray();
  for (const payment of paid) {
    const { _id, credits } = payment;
    const marked = await payments.updateOne(
      { _id, unreported: true, credits },
      { $set: { report_batch } },
    );
    if (marked.matchedCount > 0) reports.push(...buildPaymentReports(payment));
  }
  const more = payouts.length === BATCH_MAX || paid.length === BATCH_MAX;
  return { reports, batch: reports.length === 0 ? null : report_batch, more };
}

export function buildPaymentReports({
  _id,
  credits,
}: Pick<SepaPayment, '_id' | 'credits'>): Report[] {
  return credits.map(({ at: occurred_at, amount, currency, isReversal, ...credit }) => {
    const name = nameInCallback(credit);
    const kind = isReversal ? 'clawed_back' : 'credited';
    const bank_reference = credit.bank_reference ?? undefined;
    const value_date = credit.value_date ?? undefined;
    return {
      ...({ resource: 'payment', resource_id: _id } as const),
      name: isReversal ? ('clawed_back' as const) : ('settled' as const),
      callback: {
        callback_id: `sepa:${kind}:${_id}:${name}:${amount}${currency}`,
        ...{ occurred_at, amount, currency },
        ...omitUndefined({ bank_reference, value_date }),
      },
    };
  });
}

/** Writes the place in a reference so that neither a `callback_id` refuses it, nor another equals it. */
function nameInCallback({ bank_reference }: { bank_reference: string | null }): string {
  return bank_reference?.replace('#', '%:') ?? '';
}

type ReportedLine = Pick<
  SepaLine,
  | ('_id' | 'file_id' | 'amount' | 'currency')
  | ('failure' | 'duplicate' | 'verification' | 'executed' | 'booked' | 'returned' | 'others')
>;

/** Keeps the order of the facts. */
export function buildReports(line: ReportedLine): Report[] {
  const { _id, file_id, failure, duplicate, verification, executed } = line;
  const { booked, returned, others } = line;
  const reports: Report[] = [];
  const payout = { resource: 'payout', resource_id: _id } as const;
  const add = (name: PayoutCallbackName, callback: Report['callback']) =>
    reports.push({ ...payout, name, callback });
  const addOthers = (kinds: readonly Kind[]) => {
    for (const fact of others.filter((other) => kinds.includes(other.kind))) {
      const { amount, currency, kind } = fact;
      // Differs for each reference and amount.
      const callback_id = `sepa:${kind}:${_id}:${nameInCallback(fact)}:${amount}${currency}`;
      const about = { ...describeMovement(line, fact), ...describeReturn(kind, fact) };
      add(kind === 'booked' ? 'completed' : kind, { ...about, callback_id, amount, currency });
    }
  };
  if (verification !== undefined) {
    const { result, checked_at: occurred_at } = verification;
    const callback_id = `sepa:payee:${_id}:${result}:${occurred_at}`;
    add('payee_verified', { callback_id, occurred_at, result });
  }
  // An execution, and a booking, say more.
  if (duplicate !== null && booked === null && executed === undefined) {
    const { code, at: occurred_at } = duplicate;
    const callback_id = `sepa:duplicate:${_id}:${file_id}`;
    add('called_duplicate', { callback_id, occurred_at, code, reason: DUPLICATE });
  }
  if (executed !== undefined) {
    add('completed', { callback_id: `sepa:executed:${_id}`, occurred_at: executed.at });
  }
  // The booking names what was executed.
  if (booked !== null) {
    add('completed', { callback_id: `sepa:booked:${_id}`, ...describeMovement(line, booked) });
  }
  addOthers(['booked', 'debit_reversed']);
  if (failure !== null) {
    const { code, message: reason, at: occurred_at } = failure;
    const about = omitUndefined({ code: code ?? undefined, reason, occurred_at });
    add('failed', { callback_id: `sepa:failed:${_id}`, ...about });
  }
  if (returned !== null) {
    const about = { ...describeMovement(line, returned), ...describeReturn('returned', returned) };
    add('returned', { callback_id: `sepa:returned:${_id}`, ...about });
  }
  addOthers(['returned', 'return_reversed']);
  return reports;
}

function describeMovement({ amount, currency }: ReportedLine, fact: LineMovement) {
  const isSame = fact.amount === amount && fact.currency === currency;
  return omitUndefined({
    occurred_at: fact.at,
    bank_reference: fact.bank_reference ?? undefined,
    value_date: fact.value_date ?? undefined,
    ...(isSame ? {} : { amount: fact.amount, currency: fact.currency }),
  });
}

function describeReturn(kind: Kind, { code }: LineMovement) {
  return kind !== 'returned' ? {} : omitUndefined({ code: code ?? undefined, reason: RETURNED });
}
