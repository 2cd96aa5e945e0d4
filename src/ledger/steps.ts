import { assertNever } from '../domain/assert';
import type { PayoutStatus } from '../domain/payout';
import type { PaymentDocument } from '../store/payments';
import type { PayoutDocument } from '../store/payouts';
import type { RefundDocument } from '../store/refunds';
import { LEGS, type Leg, type NewPosting, type PostingKind } from './postings';

/** Posting of a settled payment, which credits the merchant. */
export function settlementOf(payment: PaymentDocument, at: string): NewPosting {
  const { _id: resource_id, account_id, livemode, currency, connector, amount } = payment;
  const legs = LEGS.payment_settled(connector, amount);
  return { kind: 'payment_settled', resource_id, account_id, livemode, currency, at, legs };
}

/** Posting of a refund's step; at most one of each kind. */
export function refundPosting(
  kind: 'refund_accepted' | 'refund_settled' | 'refund_failed',
  refund: RefundDocument,
  at: string,
): NewPosting {
  const { _id: resource_id, account_id, livemode, currency, connector, amount } = refund;
  const legs =
    kind === 'refund_settled' ? LEGS.refund_settled(connector, amount) : LEGS[kind](amount);
  return { kind, resource_id, account_id, livemode, currency, at, legs };
}

/** Moves of a payout, as far as its postings depend on them. */
interface PayoutMove {
  from: { status: PayoutStatus };
  to: readonly PayoutStatus[];
  /** ISO 8601, ms. */
  at: string;
}

/** Posting that reserves amount and fee when the payout is accepted. */
export function reservationOf(payout: PayoutDocument): NewPosting {
  const { balance_account, amount, fee, created_at } = payout;
  const legs = LEGS.payout_reserved(balance_account, amount, fee);
  return payoutPosting('payout_reserved', payout, legs, created_at);
}

/** Postings of a payout's move. @param payout after the move */
export function payoutPostings(payout: PayoutDocument, { from, to, at }: PayoutMove): NewPosting[] {
  const { balance_account, amount, fee, connector } = payout;
  return to.flatMap((status): NewPosting[] => {
    switch (status) {
      case 'sent': {
        const legs = LEGS.payout_captured(balance_account, connector, amount, fee);
        return [payoutPosting('payout_captured', payout, legs, at)];
      }
      case 'failed': {
        if (from.status !== 'sent') {
          const legs = LEGS.payout_released(balance_account, amount, fee);
          return [payoutPosting('payout_released', payout, legs, at)];
        }
        const legs = LEGS.payout_reversed(balance_account, connector, amount, fee);
        return [payoutPosting('payout_reversed', payout, legs, at)];
      }
      case 'returned': {
        const legs = LEGS.payout_returned(balance_account, connector, amount);
        return [payoutPosting('payout_returned', payout, legs, at)];
      }
      case 'created':
      case 'submitted':
      case 'completed':
        return [];
      default:
        return assertNever(status);
    }
  });
}

function payoutPosting(
  kind: PostingKind,
  { _id: resource_id, account_id, livemode, currency }: PayoutDocument,
  legs: Leg[],
  at: string,
): NewPosting {
  return { kind, resource_id, account_id, livemode, currency, at, legs };
}
