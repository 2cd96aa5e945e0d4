import type { MongoClient } from 'mongodb';
import type { RecipientDetails } from '../../src/domain/payout/recipient';
import type {
  Outdated,
  PayoutAnswer,
  PayoutInstruction,
  PayoutLookup,
} from '../contract/activities';
import type { InstructionGuard } from '../contract/guard';
import { RecipientDeleted } from '../contract/recipients';
import { acceptIntoBook, type BankRefusal, type Book, type BookEntry } from './book';
import { getPayoutBehavior, type PayoutBehavior } from './magic-amounts';
import type { Outbox } from './outbox';
import { planPayout } from './plan';

export interface PayoutActivityDeps {
  mongo: MongoClient;
  payouts: Book;
  outbox: Outbox;
  /** Whether completions follow by themselves. */
  autoplay: boolean;
  /** Compares an instruction with the product's document. @see connectors/contract/guard.ts */
  findOutdated: InstructionGuard;
  /** Decrypts the details of a payout's recipient. @see connectors/contract/recipients.ts */
  decryptRecipient: (payout_id: string) => Promise<RecipientDetails>;
  /** Reads the text for the recipient's statement. @see connectors/contract/recipients.ts */
  readReference: (payout_id: string) => Promise<string | null>;
}

/**
 * Writes book and callbacks in one transaction; a repeat answers from the book.
 * @throws Error where the recipient cannot be opened, and where the sandbox plays that the
 *   instruction, or the answer to it, got lost; never with anything of the recipient in it
 */
export async function sendPayout(
  { payouts: book, decryptRecipient, readReference, findOutdated, ...deps }: PayoutActivityDeps,
  instruction: PayoutInstruction,
): Promise<PayoutAnswer | Outdated> {
  const { payout_id: _id, amount, livemode, version } = instruction;
  if (livemode) {
    const message = 'The sandbox bank sends no live payouts.';
    return { outcome: 'refused', code: 'live_not_supported', message };
  }
  const existing = await getArrivedEntry(book, _id);
  if (existing !== null) return buildAnswer(existing);
  const outdated = await findOutdated({ resource: 'payout', id: _id, version });
  if (outdated !== undefined) return outdated;
  const refusal = await checkRecipient(decryptRecipient, _id);
  const statement = await readReference(_id);
  const behavior = refusal === undefined ? getPayoutBehavior(amount) : 'rejected';
  if (behavior === 'instruction_lost' && (await book.lose(_id, instruction))) {
    throw new Error('The instruction got lost on its way to the bank.');
  }
  const { entry, isNew } = await acceptIntoBook(
    { ...deps, book },
    {
      resource: 'payout',
      _id,
      instruction,
      ...toOutcome(behavior, refusal),
      statement,
      planned: refusal === undefined ? planPayout(amount, deps.autoplay) : [],
    },
  );
  if (isNew && behavior === 'answer_lost') throw new Error('The answer of the bank got lost.');
  return buildAnswer(entry);
}

export async function lookUpPayout(
  { payouts }: Pick<PayoutActivityDeps, 'payouts'>,
  payout_id: string,
): Promise<PayoutLookup> {
  const entry = await getArrivedEntry(payouts, payout_id);
  return entry === null ? { outcome: 'not_found' } : buildAnswer(entry);
}

async function getArrivedEntry(book: Book, payoutId: string): Promise<BookEntry | null> {
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
  decryptRecipient: PayoutActivityDeps['decryptRecipient'],
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

function toOutcome(
  behavior: PayoutBehavior,
  refusal: BankRefusal = REJECTION,
): Pick<BookEntry, 'status' | 'refusal'> {
  if (behavior === 'rejected') return { status: 'refused', refusal };
  return { status: behavior === 'stays_submitted' ? 'submitted' : 'sent', refusal: null };
}

const REJECTION: BankRefusal = {
  code: 'payout_rejected',
  message: 'The bank rejected the payout: it does not send this amount.',
};

/** First answer to a payout that arrived, also when it has moved since. */
function buildAnswer({ bank_reference, refusal, status }: BookEntry): PayoutAnswer {
  if (refusal !== null) return { outcome: 'refused', ...refusal };
  // A queued payout stays queued: any other status was reached through `sent`.
  return { outcome: status === 'submitted' ? 'submitted' : 'sent', bank_reference };
}
