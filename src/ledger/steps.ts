import { assertNever } from '../domain/assert';
import { bookCurrency, unitsOf } from '../domain/crypto';
import type { Deposit } from '../domain/deposit';
import type { PayoutStatus } from '../domain/payout';
import type { CryptoPaymentDocument } from '../store/crypto-payments';
import type { CryptoSettlementDocument } from '../store/crypto-settlements';
import type { PaymentDocument } from '../store/payments';
import type { PayoutDocument } from '../store/payouts';
import type { RefundDocument } from '../store/refunds';
import { LEGS } from './legs';
import type { Leg, NewPosting, PostingKind, ResourcePosting } from './postings';

/** When a step takes place. */
interface Booked {
  /** ISO 8601, ms. */
  at: string;
  /** Day on which the bank books it, where it says so. */
  value_date?: string | undefined;
}

/** Minor units that moved when a payment or refund settled, where that is not what was asked. */
export function settledAmount({
  amount,
  settled_amount,
}: Pick<PaymentDocument | RefundDocument, 'amount' | 'settled_amount'>): number {
  return settled_amount ?? amount;
}

/** Posting of a payment: its settlement, or what goes wrong with its money; each at most once. */
export function paymentPosting(
  kind: 'payment_settled' | 'payment_late_received' | 'payment_late_reversed',
  payment: PaymentDocument,
  amount: number,
  { at, value_date }: Booked,
): NewPosting {
  const legs = LEGS[kind](payment.connector, amount);
  return { kind, ...ownerOf(payment), at, value_date, legs };
}

/** Posting of a claw-back. @param held what `main` holds of it; the merchant owes the rest */
export function clawBackOf(
  payment: PaymentDocument,
  { held, owed }: { held: number; owed: number },
  { at, value_date }: Booked,
): NewPosting {
  const legs = LEGS.payment_clawed_back(payment.connector, held, owed);
  return { kind: 'payment_clawed_back', ...ownerOf(payment), at, value_date, legs };
}

function ownerOf({
  _id: resource_id,
  account_id,
  livemode,
  currency,
}: Pick<PaymentDocument, '_id' | 'account_id' | 'livemode' | 'currency'>) {
  return { resource_id, account_id, livemode, currency };
}

/** Posting of a refund's step; at most one of each kind. */
export function refundPosting(
  kind: 'refund_accepted' | 'refund_settled' | 'refund_failed',
  refund: RefundDocument,
  { at, value_date }: Booked,
): NewPosting {
  const { connector, amount } = refund;
  const legs =
    kind === 'refund_settled'
      ? LEGS.refund_settled(connector, amount, settledAmount(refund))
      : LEGS[kind](amount);
  return { kind, ...ownerOf(refund), at, value_date, legs };
}

/** Minor units of a payout that came back. */
export function returnedAmount({
  amount,
  returned_amount,
}: Pick<PayoutDocument, 'amount' | 'returned_amount'>): number {
  return returned_amount ?? amount;
}

/** Moves of a payout, as far as its postings depend on them. */
interface PayoutMove {
  from: { status: PayoutStatus };
  to: readonly PayoutStatus[];
  /** ISO 8601, ms. */
  at: string;
  value_date?: string | undefined;
}

/** Posting that reserves amount and fee when the payout is accepted. */
export function reservationOf(payout: PayoutDocument): NewPosting {
  const { balance_account, amount, fee, created_at } = payout;
  const legs = LEGS.payout_reserved(balance_account, amount, fee);
  return payoutPosting('payout_reserved', payout, legs, { at: created_at });
}

/** Postings of a payout's move. @param payout after the move */
export function payoutPostings(payout: PayoutDocument, move: PayoutMove): NewPosting[] {
  const { from, to } = move;
  const { balance_account, amount, fee, connector } = payout;
  return to.flatMap((status): NewPosting[] => {
    switch (status) {
      case 'sent': {
        const legs = LEGS.payout_captured(balance_account, connector, amount, fee);
        return [payoutPosting('payout_captured', payout, legs, move)];
      }
      case 'failed': {
        if (from.status !== 'sent') {
          const legs = LEGS.payout_released(balance_account, amount, fee);
          return [payoutPosting('payout_released', payout, legs, move)];
        }
        const legs = LEGS.payout_reversed(balance_account, connector, amount, fee);
        return [payoutPosting('payout_reversed', payout, legs, move)];
      }
      case 'returned': {
        const legs = LEGS.payout_returned(balance_account, connector, returnedAmount(payout));
        return [payoutPosting('payout_returned', payout, legs, move)];
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

/** Posting of a deposit that counts, or goes back: one for each of a crypto payment's transactions. */
export function depositPosting(
  kind: ResourcePosting<'crypto_payment'>,
  payment: CryptoPaymentDocument,
  { transaction_id: step, amount }: Pick<Deposit, 'transaction_id' | 'amount'>,
  at: string,
): NewPosting {
  const { _id: resource_id, account_id, livemode, connector } = payment;
  const legs = LEGS[kind](connector, unitsOf(amount));
  return {
    kind,
    resource_id,
    step,
    account_id,
    livemode,
    currency: bookCurrency(payment),
    at,
    legs,
  };
}

/** Units that a settlement draws. */
export function settlementDraw({
  amount,
  fee,
}: Pick<CryptoSettlementDocument, 'amount' | 'fee'>): bigint {
  return unitsOf(amount) + unitsOf(fee);
}

/** Posting of a settlement's step; at most one of each kind. */
export function settlementPosting(
  kind: ResourcePosting<'crypto_settlement'>,
  settlement: CryptoSettlementDocument,
  at: string,
): NewPosting {
  const draw = settlementDraw(settlement);
  const legs =
    kind === 'crypto_settlement_captured'
      ? LEGS[kind](settlement.connector, draw)
      : LEGS[kind](draw);
  return { kind, ...ownerOf(settlement), at, legs };
}

function payoutPosting(
  kind: PostingKind,
  payout: PayoutDocument,
  legs: Leg[],
  { at, value_date }: Booked,
): NewPosting {
  return { kind, ...ownerOf(payout), at, value_date, legs };
}
