import type { MongoClient } from 'mongodb';
import type { z } from 'zod';
import type { MovementStore } from '../../src/service/banks/sandbox-bank/movements';
import type {
  PayoutAnswer,
  PayoutLookup,
  RefundAnswer,
  RefundLookup,
} from '../contract/activities';
import type { ACTIVITIES } from '../contract/schemas';
import { acceptIntoBook, type BankRefusal, type Book, type BookEntry } from './book';
import { getBehavior, PAYOUT_MAGIC_AMOUNTS, REFUND_MAGIC_AMOUNTS } from './magic-amounts';
import type { Outbox } from './outbox';
import { planPayout, planRefund } from './plan';

export interface OutgoingDeps {
  mongo: MongoClient;
  refunds: Book;
  payouts: Book;
  outbox: Outbox;
  movements: MovementStore;
  autoplay: boolean;
}

/** Instruction as it is posted. */
interface Call<N extends 'sendRefund' | 'sendPayout'> {
  input: z.output<(typeof ACTIVITIES)[N]['instruction']>;
  /** Throws once the connector has given up. */
  assertAwaited: () => void;
}

/** Simulated: the instruction was executed, and its answer never arrives. */
export class AnswerLost extends Error {
  override readonly name = 'AnswerLost';
}

const REFUND_REFUSAL: BankRefusal = {
  code: 'refund_refused',
  message: 'The bank refused the refund: it does not send back this amount.',
};

const PAYOUT_REJECTION: BankRefusal = {
  code: 'payout_rejected',
  message: 'The bank rejected the payout: it does not send this amount.',
};

/**
 * Writes book and callbacks in one transaction; a repeat is answered from the book.
 * @throws AnswerLost
 */
export async function sendRefund(
  deps: OutgoingDeps,
  { input: { activity: _, ...instruction }, assertAwaited }: Call<'sendRefund'>,
): Promise<RefundAnswer> {
  const { refund_id: _id, amount } = instruction;
  const behavior = getBehavior(REFUND_MAGIC_AMOUNTS, amount);
  const isRefused = behavior === 'refused';
  const { entry, isNew } = await acceptIntoBook(
    { ...deps, book: deps.refunds, assertAwaited },
    {
      resource: 'refund',
      _id,
      instruction,
      status: isRefused ? 'refused' : 'accepted',
      refusal: isRefused ? REFUND_REFUSAL : null,
      statement: null,
      planned: planRefund(amount, deps.autoplay),
    },
  );
  if (isNew && behavior === 'answer_lost') throw new AnswerLost();
  return buildRefundAnswer(entry);
}

export async function lookUpRefund(
  { refunds }: Pick<OutgoingDeps, 'refunds'>,
  { refund_id }: { refund_id: string },
): Promise<RefundLookup> {
  const entry = await getArrivedEntry(refunds, refund_id);
  return entry === null ? { outcome: 'not_found' } : buildRefundAnswer(entry);
}

/** Returns the first answer, even if the refund has changed since. */
function buildRefundAnswer({ bank_reference, refusal }: BookEntry): RefundAnswer {
  return refusal === null
    ? { outcome: 'accepted', bank_reference }
    : { outcome: 'refused', ...refusal };
}

/** Stores nothing of the recipient. @throws AnswerLost */
export async function sendPayout(
  deps: OutgoingDeps,
  { input, assertAwaited }: Call<'sendPayout'>,
): Promise<PayoutAnswer> {
  const { activity: _, recipient: __, reference, ...instruction } = input;
  const { payout_id: _id, amount } = instruction;
  const behavior = getBehavior(PAYOUT_MAGIC_AMOUNTS, amount);
  const sentStatus = behavior === 'stays_submitted' ? 'submitted' : 'sent';
  const isRejected = behavior === 'rejected';
  const { entry, isNew } = await acceptIntoBook(
    { ...deps, book: deps.payouts, assertAwaited },
    {
      resource: 'payout',
      _id,
      instruction,
      status: isRejected ? 'refused' : sentStatus,
      refusal: isRejected ? PAYOUT_REJECTION : null,
      statement: reference,
      planned: planPayout(amount, deps.autoplay),
    },
  );
  if (isNew && behavior === 'answer_lost') throw new AnswerLost();
  return buildPayoutAnswer(entry);
}

export async function lookUpPayout(
  { payouts }: Pick<OutgoingDeps, 'payouts'>,
  { payout_id }: { payout_id: string },
): Promise<PayoutLookup> {
  const entry = await getArrivedEntry(payouts, payout_id);
  return entry === null ? { outcome: 'not_found' } : buildPayoutAnswer(entry);
}

function buildPayoutAnswer({ bank_reference, refusal, status }: BookEntry): PayoutAnswer {
  if (refusal !== null) return { outcome: 'refused', ...refusal };
  // Any status but `submitted` was reached through `sent`.
  return { outcome: status === 'submitted' ? 'submitted' : 'sent', bank_reference };
}

async function getArrivedEntry(book: Book, id: string): Promise<BookEntry | null> {
  const entry = await book.get(id);
  return entry?.status === 'lost' ? null : entry;
}
