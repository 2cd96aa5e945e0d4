import type { MongoClient } from 'mongodb';
import type { RecipientDetails } from '../../src/domain/payout/recipient';
import type { MovementStore } from '../../src/service/banks/sandbox-bank/movements';
import type {
  CancelAnswer,
  Outdated,
  PayoutAnswer,
  PayoutInstruction,
  PayoutLookup,
  RefundAnswer,
  RefundInstruction,
  RefundLookup,
} from '../contract/activities';
import { beginAttempt, type InstructionGuard } from '../contract/guard';
import { RecipientDeleted } from '../contract/recipients';
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
  now: () => Date;
  findOutdated: InstructionGuard['findOutdated'];
  decryptRecipient: (payout_id: string) => Promise<RecipientDetails>;
  readReference: (payout_id: string) => Promise<string | null>;
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
 * @throws Error if the sandbox simulates a lost instruction or answer
 */
export async function sendRefund(
  { refunds: book, findOutdated, ...deps }: OutgoingDeps,
  instruction: RefundInstruction,
): Promise<RefundAnswer | Outdated> {
  const { refund_id: _id, amount, livemode } = instruction;
  const attempt = beginAttempt(deps.now);
  if (livemode) return refuseLive('refunds');
  const existing = await getArrivedEntry(book, _id);
  if (existing !== null) return buildRefundAnswer(existing);
  const outdated = await findOutdated('refund', instruction, attempt);
  if (outdated !== undefined) return outdated;
  const behavior = getBehavior(REFUND_MAGIC_AMOUNTS, amount);
  if (behavior === 'instruction_lost') await loseOnce(book, _id, instruction);
  const isRefused = behavior === 'refused';
  const { entry, isNew } = await acceptIntoBook(
    { ...deps, book, attempt },
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
  if (isNew && behavior === 'answer_lost') throw new Error('The answer of the bank got lost.');
  return buildRefundAnswer(entry);
}

export async function lookUpRefund(book: Book, refundId: string): Promise<RefundLookup> {
  const entry = await getArrivedEntry(book, refundId);
  return entry === null ? { outcome: 'not_found' } : buildRefundAnswer(entry);
}

/** Returns the first answer, even if the refund has changed since. */
function buildRefundAnswer({ bank_reference, refusal }: BookEntry): RefundAnswer {
  return refusal === null
    ? { outcome: 'accepted', bank_reference }
    : { outcome: 'refused', ...refusal };
}

/**
 * @throws Error as `sendRefund`, and without anything of the recipient if it cannot be decrypted
 */
export async function sendPayout(
  { payouts: book, decryptRecipient, readReference, findOutdated, ...deps }: OutgoingDeps,
  instruction: PayoutInstruction,
): Promise<PayoutAnswer | Outdated> {
  const { payout_id: _id, amount, livemode } = instruction;
  const attempt = beginAttempt(deps.now);
  if (livemode) return refuseLive('payouts');
  const existing = await getArrivedEntry(book, _id);
  if (existing !== null) return buildPayoutAnswer(existing);
  const outdated = await findOutdated('payout', instruction, attempt);
  if (outdated !== undefined) return outdated;
  const deletion = await checkRecipient(decryptRecipient, _id);
  const statement = await readReference(_id);
  const behavior = deletion === undefined ? getBehavior(PAYOUT_MAGIC_AMOUNTS, amount) : 'rejected';
  if (behavior === 'instruction_lost') await loseOnce(book, _id, instruction);
  const sentStatus = behavior === 'stays_submitted' ? 'submitted' : 'sent';
  const isRejected = behavior === 'rejected';
  const { entry, isNew } = await acceptIntoBook(
    { ...deps, book, attempt },
    {
      resource: 'payout',
      _id,
      instruction,
      status: isRejected ? 'refused' : sentStatus,
      refusal: isRejected ? (deletion ?? PAYOUT_REJECTION) : null,
      statement,
      planned: deletion === undefined ? planPayout(amount, deps.autoplay) : [],
    },
  );
  if (isNew && behavior === 'answer_lost') throw new Error('The answer of the bank got lost.');
  return buildPayoutAnswer(entry);
}

export async function lookUpPayout(book: Book, payoutId: string): Promise<PayoutLookup> {
  const entry = await getArrivedEntry(book, payoutId);
  return entry === null ? { outcome: 'not_found' } : buildPayoutAnswer(entry);
}

const CANCELLED: BankRefusal = {
  code: 'cancelled',
  message: 'The payout was cancelled before it reached the bank.',
};

type CancelDeps = Pick<OutgoingDeps, 'mongo' | 'outbox' | 'movements' | 'payouts'>;

/** Refuses a payout that has not arrived, also when it arrives later; one that has is too late. */
export async function cancelPayout(
  { mongo, outbox, movements, payouts: book }: CancelDeps,
  _id: string,
): Promise<CancelAnswer> {
  const { entry } = await acceptIntoBook(
    { mongo, outbox, movements, book },
    {
      resource: 'payout',
      _id,
      instruction: null,
      status: 'refused',
      refusal: CANCELLED,
      statement: null,
      planned: [],
    },
  );
  return { outcome: entry.status === 'refused' ? 'cancelled' : 'too_late' };
}

function buildPayoutAnswer({ bank_reference, refusal, status }: BookEntry): PayoutAnswer {
  if (refusal !== null) return { outcome: 'refused', ...refusal };
  // Any status but `submitted` was reached through `sent`.
  return { outcome: status === 'submitted' ? 'submitted' : 'sent', bank_reference };
}

/**
 * @returns the refusal of a deleted recipient, which is stored and so answers a repeat
 * @throws Error without text or cause of the first one, which may quote the details
 */
async function checkRecipient(
  decryptRecipient: OutgoingDeps['decryptRecipient'],
  payoutId: string,
): Promise<BankRefusal | undefined> {
  try {
    await decryptRecipient(payoutId);
    return undefined;
  } catch (error) {
    if (error instanceof RecipientDeleted) return error.refusal;
    const kind = error instanceof Error ? error.name : typeof error;
    throw new Error(`The recipient’s details could not be opened (${kind}).`);
  }
}

function refuseLive(what: 'refunds' | 'payouts'): { outcome: 'refused' } & BankRefusal {
  const message = `The sandbox bank sends no live ${what}.`;
  return { outcome: 'refused', code: 'live_not_supported', message };
}

async function getArrivedEntry(book: Book, id: string): Promise<BookEntry | null> {
  const entry = await book.get(id);
  return entry?.status === 'lost' ? null : entry;
}

/** @throws Error for the first instruction of this id, as if it had never arrived */
async function loseOnce(
  book: Book,
  id: string,
  instruction: BookEntry['instruction'],
): Promise<void> {
  if (!(await book.lose(id, instruction))) return;
  throw new Error('The instruction got lost in transit to the bank.');
}
