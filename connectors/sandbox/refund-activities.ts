import type { MongoClient } from 'mongodb';
import type {
  Outdated,
  RefundAnswer,
  RefundInstruction,
  RefundLookup,
} from '../contract/activities';
import type { InstructionGuard } from '../contract/guard';
import { acceptIntoBook, type BankRefusal, type Book, type BookEntry } from './book';
import { getRefundBehavior } from './magic-amounts';
import type { Outbox } from './outbox';
import { planRefund } from './plan';

export interface RefundActivityDeps {
  mongo: MongoClient;
  refunds: Book;
  outbox: Outbox;
  /** Whether settlements follow by themselves. */
  autoplay: boolean;
  /** Compares an instruction with the product's document. @see connectors/contract/guard.ts */
  findOutdated: InstructionGuard;
}

/**
 * Writes book and callbacks in one transaction; a repeat answers from the book.
 * @throws Error where the sandbox plays that the instruction, or the answer to it, got lost
 */
export async function sendRefund(
  { refunds: book, findOutdated, ...deps }: RefundActivityDeps,
  instruction: RefundInstruction,
): Promise<RefundAnswer | Outdated> {
  const { refund_id: _id, amount, livemode, version } = instruction;
  if (livemode) {
    const message = 'The sandbox bank sends no live refunds.';
    return { outcome: 'refused', code: 'live_not_supported', message };
  }
  const existing = await lookUpRefund({ refunds: book }, _id);
  if (existing.outcome !== 'not_found') return existing;
  const outdated = await findOutdated({ resource: 'refund', id: _id, version });
  if (outdated !== undefined) return outdated;
  const behavior = getRefundBehavior(amount);
  if (behavior === 'instruction_lost' && (await book.lose(_id, instruction))) {
    throw new Error('The instruction got lost on its way to the bank.');
  }
  const { entry, isNew } = await acceptIntoBook(
    { ...deps, book },
    {
      resource: 'refund',
      _id,
      instruction,
      ...(behavior === 'refused' ? REFUSED : ACCEPTED),
      statement: null,
      planned: planRefund(amount, deps.autoplay),
    },
  );
  if (isNew && behavior === 'answer_lost') throw new Error('The answer of the bank got lost.');
  return buildAnswer(entry);
}

export async function lookUpRefund(
  { refunds }: Pick<RefundActivityDeps, 'refunds'>,
  refund_id: string,
): Promise<RefundLookup> {
  const entry = await refunds.get(refund_id);
  return entry === null || entry.status === 'lost' ? { outcome: 'not_found' } : buildAnswer(entry);
}

const REFUSAL: BankRefusal = {
  code: 'refund_refused',
  message: 'The bank refused the refund: it does not send back this amount.',
};
const REFUSED = { status: 'refused', refusal: REFUSAL } as const;
const ACCEPTED = { status: 'accepted', refusal: null } as const;

/** First answer to a refund that arrived, also when it has moved since. */
function buildAnswer({ bank_reference, refusal }: BookEntry): RefundAnswer {
  return refusal === null
    ? { outcome: 'accepted', bank_reference }
    : { outcome: 'refused', ...refusal };
}
