import type { PaymentStatus } from '../../domain/payment';
import type { PayoutStatus } from '../../domain/payout';
import type { RefundStatus } from '../../domain/refund';
import type { PaymentDocument } from '../../store/payments';
import type { PayoutDocument } from '../../store/payouts';
import type { RefundDocument } from '../../store/refunds';
import { LEGS, type PostingKind, type ResourcePosting } from '../postings';
import { returnedAmount, settledAmount } from '../steps';
import { placedRefunds, refundedPayments } from './refunded';
import {
  type Called,
  type Common,
  type ResourceCheck,
  type ResourceRule,
  resourceCheck,
} from './rule';

type PaymentPart = Pick<
  PaymentDocument,
  keyof Common | 'amount' | 'connector' | 'settled_amount' | 'late' | 'clawed_back'
>;
type RefundPart = Pick<RefundDocument, keyof Common | 'amount' | 'connector' | 'settled_amount'>;
type PayoutPart = Pick<
  PayoutDocument,
  keyof Common | 'amount' | 'connector' | 'fee' | 'balance_account' | 'sent_at' | 'returned_amount'
>;

const COMMON = ['account_id', 'livemode', 'currency', 'status'] as const;

/** Postings of a payment that has ended unsettled: of money that came all the same. */
const lateOf = ({ late }: PaymentPart): ResourcePosting<'payment'>[] => {
  if (!late) return [];
  return late.reversed_at === null
    ? ['payment_late_received']
    : ['payment_late_received', 'payment_late_reversed'];
};

const PAYMENTS: ResourceRule<PaymentPart, ResourcePosting<'payment'>> = {
  collection: 'payments',
  fields: [...COMMON, 'amount', 'connector', 'settled_amount', 'late', 'clawed_back'],
  postings: {
    created: [],
    awaiting_customer: [],
    authorized: [],
    settled: ({ clawed_back }) =>
      clawed_back ? ['payment_settled', 'payment_clawed_back'] : ['payment_settled'],
    failed: lateOf,
    cancelled: lateOf,
    expired: lateOf,
  } satisfies Record<PaymentStatus, Called<PaymentPart, PostingKind>>,
  legs: {
    payment_settled: (payment) => LEGS.payment_settled(payment.connector, settledAmount(payment)),
    payment_late_received: ({ connector, late }) =>
      LEGS.payment_late_received(connector, late?.amount ?? 0),
    payment_late_reversed: ({ connector, late }) =>
      LEGS.payment_late_reversed(connector, late?.amount ?? 0),
    payment_clawed_back: ({ connector, clawed_back }) =>
      LEGS.payment_clawed_back(connector, clawed_back?.held ?? 0, clawed_back?.owed ?? 0),
  },
};

const REFUNDS: ResourceRule<RefundPart, ResourcePosting<'refund'>> = {
  collection: 'refunds',
  fields: [...COMMON, 'amount', 'connector', 'settled_amount'],
  postings: {
    processing: ['refund_accepted'],
    settled: ['refund_accepted', 'refund_settled'],
    failed: ['refund_accepted', 'refund_failed'],
  } satisfies Record<RefundStatus, readonly PostingKind[]>,
  legs: {
    refund_accepted: ({ amount }) => LEGS.refund_accepted(amount),
    refund_settled: (refund) =>
      LEGS.refund_settled(refund.connector, refund.amount, settledAmount(refund)),
    refund_failed: ({ amount }) => LEGS.refund_failed(amount),
  },
};

const RESERVED = ['payout_reserved'] as const;
const CAPTURED = [...RESERVED, 'payout_captured'] as const;

const PAYOUTS: ResourceRule<PayoutPart, ResourcePosting<'payout'>> = {
  collection: 'payouts',
  fields: [
    ...COMMON,
    'amount',
    'connector',
    'fee',
    'balance_account',
    'sent_at',
    'returned_amount',
  ],
  postings: {
    created: RESERVED,
    submitted: RESERVED,
    sent: CAPTURED,
    completed: CAPTURED,
    failed: ({ sent_at }) =>
      sent_at === null ? [...RESERVED, 'payout_released'] : [...CAPTURED, 'payout_reversed'],
    returned: [...CAPTURED, 'payout_returned'],
  } satisfies Record<PayoutStatus, Called<PayoutPart, PostingKind>>,
  legs: {
    payout_reserved: ({ balance_account, amount, fee }) =>
      LEGS.payout_reserved(balance_account, amount, fee),
    payout_captured: ({ balance_account, connector, amount, fee }) =>
      LEGS.payout_captured(balance_account, connector, amount, fee),
    payout_released: ({ balance_account, amount, fee }) =>
      LEGS.payout_released(balance_account, amount, fee),
    payout_reversed: ({ balance_account, connector, amount, fee }) =>
      LEGS.payout_reversed(balance_account, connector, amount, fee),
    payout_returned: (payout) =>
      LEGS.payout_returned(payout.balance_account, payout.connector, returnedAmount(payout)),
  },
};

/** Check of each resource that moves money. */
export const RESOURCE_CHECKS: readonly ResourceCheck[] = [
  resourceCheck('payment', PAYMENTS, refundedPayments),
  resourceCheck('refund', REFUNDS, placedRefunds),
  resourceCheck('payout', PAYOUTS),
];
