import type { HeldReturn } from '../../domain/payout/held-return';
import type { SendingKind } from '../../domain/sent-held';
import { bookId } from '../../ledger/entries';
import { ENTRY_LINES } from '../../ledger/entry-lines';
import { buildSentHeld, buildSentResolved } from '../../ledger/sent-entries';
import type { RefundDocument } from '../../store/refunds';
import type { ExpectedStep } from '../rule';

/** Fields that a rule may read, since each part has them. */
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

/** Lists what is in suspense, or was, in the book of its currency. */
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

type Sender = Pick<RefundDocument, 'account_id' | 'livemode' | 'connector' | 'currency'> & {
  sent_held?: RefundDocument['sent_held'];
  balance_account?: string;
};

export function listSentHeld(kind: SendingKind, { sent_held = [], ...sender }: Sender) {
  return sent_held.map((held): ExpectedStep => {
    const { lines, ...entry } = buildSentHeld(kind, { ...sender, _id: '' }, held, held);
    return { step: held.id, lines: [...lines], book: bookId(entry) };
  });
}

/** Lists what has left suspense by an entry of its own. */
export function listSentResolved(kind: SendingKind, { sent_held = [], ...sender }: Sender) {
  return sent_held.flatMap((held): ExpectedStep[] => {
    const { id: step, resolved } = held;
    if (resolved === undefined) return [];
    const { lines, ...entry } = buildSentResolved(kind, { ...sender, _id: '' }, held, resolved);
    return [{ step, lines: [...lines], book: bookId(entry) }];
  });
}
