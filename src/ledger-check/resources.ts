import { bookCurrency, parseUnits } from '../domain/crypto/assets';
import type { CryptoPaymentStatus } from '../domain/crypto/payment';
import type { CryptoSettlementStatus } from '../domain/crypto/settlement';
import type { PaymentStatus } from '../domain/payment/payment';
import type { PayoutStatus } from '../domain/payout/payout';
import type { RefundStatus } from '../domain/refund/refund';
import { bookId, type EntryKind, type ResourceEntryKind } from '../ledger/entries';
import { ENTRY_LINES } from '../ledger/entry-lines';
import { returnedAmount, settledAmount, settlementDraw } from '../ledger/resource-entries';
import type { CryptoPaymentDocument } from '../store/crypto-payments';
import type { CryptoSettlementDocument } from '../store/crypto-settlements';
import type { PaymentDocument } from '../store/payments';
import type { PayoutDocument } from '../store/payouts';
import type { RefundDocument } from '../store/refunds';
import { comparePayments, compareRefunds } from './refunded';
import {
  type CommonFields,
  type ExpectedKinds,
  type ResourceCheck,
  type ResourceRule,
  resourceCheck,
} from './rule';

type PaymentPart = Pick<
  PaymentDocument,
  keyof CommonFields | 'amount' | 'connector' | 'settled_amount' | 'late' | 'clawed_back'
>;
type RefundPart = Pick<
  RefundDocument,
  keyof CommonFields | 'amount' | 'connector' | 'settled_amount'
>;
type PayoutPart = Pick<
  PayoutDocument,
  | keyof CommonFields
  | 'amount'
  | 'connector'
  | 'fee'
  | 'balance_account'
  | 'sent_at'
  | 'returned_amount'
>;

const COMMON = ['account_id', 'livemode', 'currency', 'status'] as const;

/** Postings of a payment that has ended unsettled: of money that came all the same. */
const listLateEntries = ({ late }: PaymentPart): ResourceEntryKind<'payment'>[] => {
  if (!late) return [];
  return late.reversed_at === null
    ? ['payment_late_received']
    : ['payment_late_received', 'payment_late_reversed'];
};

const PAYMENTS: ResourceRule<PaymentPart, ResourceEntryKind<'payment'>> = {
  collection: 'payments',
  fields: [...COMMON, 'amount', 'connector', 'settled_amount', 'late', 'clawed_back'],
  entries: {
    created: [],
    awaiting_customer: [],
    authorized: [],
    settled: ({ clawed_back }) =>
      clawed_back ? ['payment_settled', 'payment_clawed_back'] : ['payment_settled'],
    failed: listLateEntries,
    cancelled: listLateEntries,
    expired: listLateEntries,
  } satisfies Record<PaymentStatus, ExpectedKinds<PaymentPart, EntryKind>>,
  lines: {
    payment_settled: (payment) =>
      ENTRY_LINES.payment_settled(payment.connector, settledAmount(payment)),
    payment_late_received: ({ connector, late }) =>
      ENTRY_LINES.payment_late_received(connector, late?.amount ?? 0),
    payment_late_reversed: ({ connector, late }) =>
      ENTRY_LINES.payment_late_reversed(connector, late?.amount ?? 0),
    payment_clawed_back: ({ connector, clawed_back }) =>
      ENTRY_LINES.payment_clawed_back(connector, clawed_back?.held ?? 0, clawed_back?.owed ?? 0),
  },
};

const REFUNDS: ResourceRule<RefundPart, ResourceEntryKind<'refund'>> = {
  collection: 'refunds',
  fields: [...COMMON, 'amount', 'connector', 'settled_amount'],
  entries: {
    processing: ['refund_accepted'],
    settled: ['refund_accepted', 'refund_settled'],
    failed: ['refund_accepted', 'refund_failed'],
  } satisfies Record<RefundStatus, readonly EntryKind[]>,
  lines: {
    refund_accepted: ({ amount }) => ENTRY_LINES.refund_accepted(amount),
    refund_settled: (refund) =>
      ENTRY_LINES.refund_settled(refund.connector, refund.amount, settledAmount(refund)),
    refund_failed: ({ amount }) => ENTRY_LINES.refund_failed(amount),
  },
};

const RESERVED = ['payout_reserved'] as const;
const CAPTURED = [...RESERVED, 'payout_captured'] as const;

const PAYOUTS: ResourceRule<PayoutPart, ResourceEntryKind<'payout'>> = {
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
  entries: {
    created: RESERVED,
    submitted: RESERVED,
    sent: CAPTURED,
    completed: CAPTURED,
    failed: ({ sent_at }) =>
      sent_at === null ? [...RESERVED, 'payout_released'] : [...CAPTURED, 'payout_reversed'],
    returned: [...CAPTURED, 'payout_returned'],
  } satisfies Record<PayoutStatus, ExpectedKinds<PayoutPart, EntryKind>>,
  lines: {
    payout_reserved: ({ balance_account, amount, fee }) =>
      ENTRY_LINES.payout_reserved(balance_account, amount, fee),
    payout_captured: ({ balance_account, connector, amount, fee }) =>
      ENTRY_LINES.payout_captured(balance_account, connector, amount, fee),
    payout_released: ({ balance_account, amount, fee }) =>
      ENTRY_LINES.payout_released(balance_account, amount, fee),
    payout_reversed: ({ balance_account, connector, amount, fee }) =>
      ENTRY_LINES.payout_reversed(balance_account, connector, amount, fee),
    payout_returned: (payout) =>
      ENTRY_LINES.payout_returned(payout.balance_account, payout.connector, returnedAmount(payout)),
  },
};

type CryptoPaymentPart = Pick<
  CryptoPaymentDocument,
  keyof CommonFields | 'connector' | 'asset' | 'network' | 'deposits' | 'reported'
>;

/** Deposits that call for a posting of a kind. */
const selectDeposits = (
  { deposits }: CryptoPaymentPart,
  kind: ResourceEntryKind<'crypto_payment'>,
) =>
  deposits.filter(({ status, returned = false }) =>
    kind === 'crypto_payment_returned' ? returned : returned || status === 'confirmed',
  );

const DEPOSITED: readonly ResourceEntryKind<'crypto_payment'>[] = [
  'crypto_payment_credited',
  'crypto_payment_returned',
];

/** Each deposit that counts is credited, and each that goes back taken off, whatever the state. */
const CRYPTO_PAYMENTS: ResourceRule<CryptoPaymentPart, ResourceEntryKind<'crypto_payment'>> = {
  collection: 'crypto_payments',
  fields: [...COMMON, 'connector', 'asset', 'network', 'deposits', 'reported'],
  entries: {
    awaiting_deposit: DEPOSITED,
    underpaid: DEPOSITED,
    held: DEPOSITED,
    received: DEPOSITED,
    expired: DEPOSITED,
  } satisfies Record<CryptoPaymentStatus, readonly EntryKind[]>,
  lines: { crypto_payment_credited: () => [], crypto_payment_returned: () => [] },
  steps: (payment, kind) =>
    selectDeposits(payment, kind).map(({ transaction_id: step, amount }) => ({
      step,
      lines: ENTRY_LINES[kind](payment.connector, parseUnits(amount)),
    })),
  book: (payment) => bookId({ ...payment, currency: bookCurrency(payment) }),
  reportedVersions: ({ reported }) => reported.map(({ version }) => version),
};

type SettlementPart = Pick<
  CryptoSettlementDocument,
  keyof CommonFields | 'connector' | 'amount' | 'fee'
>;

const SETTLEMENT_RESERVED = ['crypto_settlement_reserved'] as const;

const CRYPTO_SETTLEMENTS: ResourceRule<SettlementPart, ResourceEntryKind<'crypto_settlement'>> = {
  collection: 'crypto_settlements',
  fields: [...COMMON, 'connector', 'amount', 'fee'],
  entries: {
    pending: SETTLEMENT_RESERVED,
    sent: SETTLEMENT_RESERVED,
    completed: [...SETTLEMENT_RESERVED, 'crypto_settlement_captured'],
    failed: [...SETTLEMENT_RESERVED, 'crypto_settlement_released'],
  } satisfies Record<CryptoSettlementStatus, readonly EntryKind[]>,
  lines: {
    crypto_settlement_reserved: (part) =>
      ENTRY_LINES.crypto_settlement_reserved(settlementDraw(part)),
    crypto_settlement_captured: (part) =>
      ENTRY_LINES.crypto_settlement_captured(part.connector, settlementDraw(part)),
    crypto_settlement_released: (part) =>
      ENTRY_LINES.crypto_settlement_released(settlementDraw(part)),
  },
  reportedVersions: ({ status, version }) =>
    status === 'completed' || status === 'failed' ? [version] : [],
};

/** Check of each resource that moves money. */
export const RESOURCE_CHECKS: readonly ResourceCheck[] = [
  resourceCheck('payment', PAYMENTS, comparePayments),
  resourceCheck('refund', REFUNDS, compareRefunds),
  resourceCheck('payout', PAYOUTS),
  resourceCheck('crypto_payment', CRYPTO_PAYMENTS),
  resourceCheck('crypto_settlement', CRYPTO_SETTLEMENTS),
];
