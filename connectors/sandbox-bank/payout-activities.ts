import type { MongoClient } from 'mongodb';
import type { RecipientDetails } from '../../src/domain/recipient';
import type { PayoutAnswer, PayoutInstruction, PayoutLookup } from '../contract/activities';
import type { InstructionGuard } from '../contract/guard';
import { RecipientDeleted } from '../contract/recipients';
import { acceptIntoBook, type BankRefusal, type Book, type BookEntry } from './book';
import { type PayoutBehaviour, payoutBehaviourOf } from './magic-amounts';
import type { Outbox } from './outbox';
import { planPayout } from './plan';

export interface PayoutActivityDeps {
  mongo: MongoClient;
  payouts: Book;
  outbox: Outbox;
  /** Whether completions follow by themselves. */
  autoplay: boolean;
  /** Holds an instruction against the product's record. */
  assertCurrent: InstructionGuard;
  /** Decrypts the details of a payout's recipient. @see connectors/contract/recipients.ts */
  openRecipient: (payout_id: string) => Promise<RecipientDetails>;
  /** Reads the text for the recipient's statement. @see connectors/contract/recipients.ts */
  readReference: (payout_id: string) => Promise<string | null>;
}

/**
 * Writes book and callbacks in one transaction; a repeat answers from the book.
 * @throws Error where the recipient cannot be opened, and where the sandbox plays that the
 *   instruction, or the answer to it, got lost; never with anything of the recipient in it
 */
export async function sendPayout(
  { payouts: book, openRecipient, readReference, assertCurrent, ...deps }: PayoutActivityDeps,
  instruction: PayoutInstruction,
): Promise<PayoutAnswer> {
  const { payout_id: _id, amount, livemode, version } = instruction;
  if (livemode) {
    const message = 'The sandbox bank sends no live payouts.';
    return { outcome: 'refused', code: 'live_not_supported', message };
  }
  const known = await arrived(book, _id);
  if (known !== null) return answerOf(known);
  await assertCurrent({ resource: 'payout', id: _id, version });
  const deleted = await checkRecipient(openRecipient, _id);
  const statement = await readReference(_id);
  const behaviour = deleted === undefined ? payoutBehaviourOf(amount) : 'rejected';
  if (behaviour === 'instruction_lost' && (await book.lose(_id, instruction))) {
    throw new Error('The instruction got lost on its way to the bank.');
  }
  const { entry, made } = await acceptIntoBook(
    { ...deps, book },
    {
      resource: 'payout',
      _id,
      instruction,
      ...madeOf(behaviour, deleted),
      statement,
      planned: deleted === undefined ? planPayout(amount, deps.autoplay) : [],
    },
  );
  if (made && behaviour === 'answer_lost') throw new Error('The answer of the bank got lost.');
  return answerOf(entry);
}

export async function lookUpPayout(
  { payouts }: Pick<PayoutActivityDeps, 'payouts'>,
  payout_id: string,
): Promise<PayoutLookup> {
  const entry = await arrived(payouts, payout_id);
  return entry === null ? { outcome: 'not_found' } : answerOf(entry);
}

async function arrived(book: Book, payoutId: string): Promise<BookEntry | null> {
  const entry = await book.get(payoutId);
  return entry?.status === 'lost' ? null : entry;
}

/**
 * Checks that the details can be opened, as a real bank would be sent them.
 * @returns the refusal of a recipient that was deleted; it goes into the book, so that an attempt
 *   which opened the details before is refused, too
 * @throws Error without text or cause of the first one, which may quote the details
 */
async function checkRecipient(
  openRecipient: PayoutActivityDeps['openRecipient'],
  payoutId: string,
): Promise<BankRefusal | undefined> {
  try {
    await openRecipient(payoutId);
    return undefined;
  } catch (error) {
    if (error instanceof RecipientDeleted) return error.refusal;
    const kind = error instanceof Error ? error.name : typeof error;
    throw new Error(`The recipient’s details could not be opened (${kind}).`);
  }
}

function madeOf(
  behaviour: PayoutBehaviour,
  refusal: BankRefusal = REJECTION,
): Pick<BookEntry, 'status' | 'refusal'> {
  if (behaviour === 'rejected') return { status: 'refused', refusal };
  return { status: behaviour === 'stays_submitted' ? 'submitted' : 'sent', refusal: null };
}

const REJECTION: BankRefusal = {
  code: 'payout_rejected',
  message: 'The bank rejected the payout: it does not send this amount.',
};

/** First answer to a payout that arrived, also when it has moved since. */
function answerOf({ bank_reference, refusal, status }: BookEntry): PayoutAnswer {
  if (refusal !== null) return { outcome: 'refused', ...refusal };
  // A queued payout stays queued: any other status was reached through `sent`.
  return { outcome: status === 'submitted' ? 'submitted' : 'sent', bank_reference };
}
