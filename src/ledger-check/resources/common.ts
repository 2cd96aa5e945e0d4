import type { HeldReturn } from '../../domain/payout/held-return';
import { bookId } from '../../ledger/entries';
import { ENTRY_LINES } from '../../ledger/entry-lines';
import type { RefundDocument } from '../../store/refunds';
import type { ExpectedStep } from '../rule';

/** Fields that a rule reads: each part has these, so that a rule cannot use another. */
export const COMMON = ['account_id', 'livemode', 'currency', 'status'] as const;

/** Lists what a bank sent once more, in the book of its currency. */
export function listSentAgain({
  sent_again = [],
  ...resource
}: Pick<RefundDocument, 'account_id' | 'livemode' | 'connector' | 'sent_again'>): ExpectedStep[] {
  return sent_again.map(({ id: step, amount, currency }) => ({
    step,
    lines: ENTRY_LINES.payout_sent_again(resource.connector, amount),
    book: bookId({ ...resource, currency }),
  }));
}

/** Lists what came back and is in suspense, or was, in the book of its currency. */
export function listHeldReturns({
  returns_held = [],
  ...resource
}: Pick<RefundDocument, 'account_id' | 'livemode' | 'connector'> & {
  returns_held?: readonly HeldReturn[];
}): ExpectedStep[] {
  return returns_held.map(({ id: step, amount, currency, is_return }) => ({
    step,
    lines: ENTRY_LINES.payout_return_held(resource.connector, amount, is_return),
    book: bookId({ ...resource, currency }),
  }));
}
