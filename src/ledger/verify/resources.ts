import { bookCurrency, unitsOf } from '../../domain/crypto';
import type { CryptoPaymentStatus } from '../../domain/crypto-payment';
import type { CryptoSettlementStatus } from '../../domain/crypto-settlement';
import type { PaymentStatus } from '../../domain/payment';
import type { PayoutStatus } from '../../domain/payout';
import type { RefundStatus } from '../../domain/refund';
import type { CryptoPaymentDocument } from '../../store/crypto-payments';
import type { CryptoSettlementDocument } from '../../store/crypto-settlements';
import type { PaymentDocument } from '../../store/payments';
import type { PayoutDocument } from '../../store/payouts';
import type { RefundDocument } from '../../store/refunds';
import { LEGS } from '../legs';
import { bookId, type PostingKind, type ResourcePosting } from '../postings';
import { returnedAmount, settledAmount, settlementDraw } from '../steps';
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

type CryptoPaymentPart = Pick<
  CryptoPaymentDocument,
  keyof Common | 'connector' | 'asset' | 'network' | 'deposits' | 'told'
>;

/** Deposits that call for a posting of a kind. */
const posted = ({ deposits }: CryptoPaymentPart, kind: ResourcePosting<'crypto_payment'>) =>
  deposits.filter(({ status, returned = false }) =>
    kind === 'crypto_payment_returned' ? returned : returned || status === 'confirmed',
  );

const DEPOSITED: readonly ResourcePosting<'crypto_payment'>[] = [
  'crypto_payment_credited',
  'crypto_payment_returned',
];

/** Each deposit that counts is credited, and each that goes back taken off, whatever the state. */
const CRYPTO_PAYMENTS: ResourceRule<CryptoPaymentPart, ResourcePosting<'crypto_payment'>> = {
  collection: 'crypto_payments',
  fields: [...COMMON, 'connector', 'asset', 'network', 'deposits', 'told'],
  postings: {
    awaiting_deposit: DEPOSITED,
    underpaid: DEPOSITED,
    held: DEPOSITED,
    received: DEPOSITED,
    expired: DEPOSITED,
  } satisfies Record<CryptoPaymentStatus, readonly PostingKind[]>,
  legs: { crypto_payment_credited: () => [], crypto_payment_returned: () => [] },
  steps: (payment, kind) =>
    posted(payment, kind).map(({ transaction_id: step, amount }) => ({
      step,
      legs: LEGS[kind](payment.connector, unitsOf(amount)),
    })),
  book: (payment) => bookId({ ...payment, currency: bookCurrency(payment) }),
  told: ({ told }) => told.map(({ version }) => version),
};

type SettlementPart = Pick<CryptoSettlementDocument, keyof Common | 'connector' | 'amount' | 'fee'>;

const SETTLEMENT_RESERVED = ['crypto_settlement_reserved'] as const;

const CRYPTO_SETTLEMENTS: ResourceRule<SettlementPart, ResourcePosting<'crypto_settlement'>> = {
  collection: 'crypto_settlements',
  fields: [...COMMON, 'connector', 'amount', 'fee'],
  postings: {
    pending: SETTLEMENT_RESERVED,
    sent: SETTLEMENT_RESERVED,
    completed: [...SETTLEMENT_RESERVED, 'crypto_settlement_captured'],
    failed: [...SETTLEMENT_RESERVED, 'crypto_settlement_released'],
  } satisfies Record<CryptoSettlementStatus, readonly PostingKind[]>,
  legs: {
    crypto_settlement_reserved: (part) => LEGS.crypto_settlement_reserved(settlementDraw(part)),
    crypto_settlement_captured: (part) =>
      LEGS.crypto_settlement_captured(part.connector, settlementDraw(part)),
    crypto_settlement_released: (part) => LEGS.crypto_settlement_released(settlementDraw(part)),
  },
  told: ({ status, version }) => (status === 'completed' || status === 'failed' ? [version] : []),
};

/** Check of each resource that moves money. */
export const RESOURCE_CHECKS: readonly ResourceCheck[] = [
  resourceCheck('payment', PAYMENTS, refundedPayments),
  resourceCheck('refund', REFUNDS, placedRefunds),
  resourceCheck('payout', PAYOUTS),
  resourceCheck('crypto_payment', CRYPTO_PAYMENTS),
  resourceCheck('crypto_settlement', CRYPTO_SETTLEMENTS),
];
