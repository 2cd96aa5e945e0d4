import { bookCurrency } from '../domain/crypto/assets';
import {
  DEPOSIT_STEPS,
  type DepositStep,
  depositKey,
  listDepositSteps,
} from '../domain/crypto/deposit';
import type { CryptoPaymentStatus } from '../domain/crypto/payment';
import type { CryptoSettlementStatus } from '../domain/crypto/settlement';
import { omitUndefined } from '../domain/defined';
import type { PaymentStatus } from '../domain/payment/payment';
import { sumAmounts } from '../domain/payment/receipt';
import type { PayoutStatus } from '../domain/payout/payout';
import type { RefundStatus } from '../domain/refund/refund';
import { bookId, type EntryKind, type ResourceEntryKind } from '../ledger/entries';
import { ENTRY_LINES } from '../ledger/entry-lines';
import {
  buildDepositLines,
  buildNetworkFee,
  receiptKinds,
  returnedAmount,
  returnedByBank,
  settledAmount,
  settlementDraw,
} from '../ledger/resource-entries';
import type { CryptoPaymentDocument } from '../store/crypto-payments';
import type { CryptoSettlementDocument } from '../store/crypto-settlements';
import type { PaymentDocument } from '../store/payments';
import type { PayoutDocument } from '../store/payouts';
import type { RefundDocument } from '../store/refunds';
import { comparePayments, compareRefunds } from './refunded';
import {
  type ExpectedKinds,
  type ExpectedStep,
  type ResourceCheck,
  type ResourceRule,
  resourceCheck,
} from './rule';

/** Fields that a rule reads: each part has these, so that a rule cannot use another. */
const COMMON = ['account_id', 'livemode', 'currency', 'status'] as const;
const PAYMENT_FIELDS = [
  ...COMMON,
  'amount',
  'connector',
  'settled_amount',
  'receipts',
  'disputes',
] as const;
const REFUND_FIELDS = [
  ...COMMON,
  'amount',
  'connector',
  'settled_amount',
  'sent_late',
  'sent_again',
] as const;
const PAYOUT_FIELDS = [
  ...COMMON,
  'amount',
  'connector',
  'fee',
  'balance_account',
  'sent_at',
  'returned_amount',
  'sent_again',
] as const;
const CRYPTO_PAYMENT_FIELDS = [
  ...COMMON,
  'connector',
  'asset',
  'network',
  'deposits',
  'reported',
] as const;
const SETTLEMENT_FIELDS = [
  ...COMMON,
  ...(['connector', 'amount', 'fee', 'network', 'network_fee'] as const),
] as const;

type PaymentPart = Pick<PaymentDocument, (typeof PAYMENT_FIELDS)[number]>;
type RefundPart = Pick<RefundDocument, (typeof REFUND_FIELDS)[number]>;
type PayoutPart = Pick<PayoutDocument, (typeof PAYOUT_FIELDS)[number]>;
type CryptoPaymentPart = Pick<CryptoPaymentDocument, (typeof CRYPTO_PAYMENT_FIELDS)[number]>;
type SettlementPart = Pick<CryptoSettlementDocument, (typeof SETTLEMENT_FIELDS)[number]>;

/** Each receipt is held, and may be back with the customer, in any state. */
const RECEIVED = [
  'payment_late_received',
  'payment_late_reversed',
  'payment_receipt_held',
  'payment_receipt_returned',
] as const satisfies ResourceEntryKind<'payment'>[];

/** Each dispute took money, and may have given it back. */
const DISPUTED = [
  'payment_clawed_back',
  'payment_dispute_opened',
  'payment_dispute_won',
] as const satisfies ResourceEntryKind<'payment'>[];

const SETTLED = [...RECEIVED, 'payment_settled', ...DISPUTED] as const;

function listReceiptSteps(payment: PaymentPart, kind: ResourceEntryKind<'payment'>) {
  return (payment.receipts ?? []).flatMap((receipt): ExpectedStep[] => {
    const { held, returned } = receiptKinds(receipt);
    const isPosted = kind === held || (kind === returned && receipt.state === 'returned');
    if (!isPosted) return [];
    const { id: step, amount, currency } = receipt;
    const lines = ENTRY_LINES[kind === held ? held : returned](payment.connector, amount);
    return [{ step, lines, book: bookId({ ...payment, currency }) }];
  });
}

function listDisputeSteps(
  { disputes = [], connector }: PaymentPart,
  kind: (typeof DISPUTED)[number],
): ExpectedStep[] {
  if (kind !== 'payment_dispute_won') {
    return disputes
      .filter((dispute) => kind === `payment_${dispute.kind}`)
      .map(({ step, held, owed }) => ({
        ...omitUndefined({ step }),
        lines: ENTRY_LINES[kind](connector, held, owed),
      }));
  }
  return disputes
    .filter((dispute) => returnedByBank(dispute) > 0 && !dispute.is_reversed)
    .map((dispute) => ({
      step: dispute.id,
      lines: ENTRY_LINES.payment_dispute_won(connector, returnedByBank(dispute)),
    }));
}

const PAYMENTS: ResourceRule<PaymentPart, ResourceEntryKind<'payment'>> = {
  collection: 'payments',
  fields: PAYMENT_FIELDS,
  entries: {
    created: RECEIVED,
    awaiting_customer: RECEIVED,
    authorized: RECEIVED,
    settled: SETTLED,
    failed: RECEIVED,
    cancelled: RECEIVED,
    expired: RECEIVED,
  } satisfies Record<PaymentStatus, ExpectedKinds<PaymentPart, EntryKind>>,
  lines: {
    payment_settled: ({ receipts = [], ...payment }) => {
      const credited = receipts.filter(({ state }) => state === 'credited');
      const { connector } = payment;
      return ENTRY_LINES.payment_settled(connector, settledAmount(payment), sumAmounts(credited));
    },
    payment_late_received: () => [],
    payment_late_reversed: () => [],
    payment_receipt_held: () => [],
    payment_receipt_returned: () => [],
    payment_clawed_back: () => [],
    payment_dispute_opened: () => [],
    payment_dispute_won: () => [],
  },
  steps: Object.fromEntries([
    ...RECEIVED.map((kind) => [kind, (payment: PaymentPart) => listReceiptSteps(payment, kind)]),
    ...DISPUTED.map((kind) => [kind, (payment: PaymentPart) => listDisputeSteps(payment, kind)]),
  ]),
};

/** Lists what a bank sent once more, in the book of its currency. */
function listSentAgain({ sent_again = [], ...resource }: RefundPart | PayoutPart): ExpectedStep[] {
  return sent_again.map(({ id: step, amount, currency }) => ({
    step,
    lines: ENTRY_LINES.payout_sent_again(resource.connector, amount),
    book: bookId({ ...resource, currency }),
  }));
}

const FAILED_REFUND = ['refund_accepted', 'refund_failed', 'refund_sent_again'] as const;

const REFUNDS: ResourceRule<RefundPart, ResourceEntryKind<'refund'>> = {
  collection: 'refunds',
  fields: REFUND_FIELDS,
  entries: {
    processing: ['refund_accepted'],
    settled: ['refund_accepted', 'refund_settled', 'refund_sent_again'],
    failed: ({ sent_late }) => [
      ...FAILED_REFUND,
      ...(sent_late ? (['refund_sent_late'] as const) : []),
    ],
  } satisfies Record<RefundStatus, ExpectedKinds<RefundPart, EntryKind>>,
  lines: {
    refund_accepted: ({ amount }) => ENTRY_LINES.refund_accepted(amount),
    refund_settled: (refund) =>
      ENTRY_LINES.refund_settled(refund.connector, refund.amount, settledAmount(refund)),
    refund_failed: ({ amount }) => ENTRY_LINES.refund_failed(amount),
    refund_sent_late: ({ connector, sent_late }) =>
      ENTRY_LINES.refund_sent_late(connector, sent_late?.held ?? 0, sent_late?.owed ?? 0),
    refund_sent_again: () => [],
  },
  steps: { refund_sent_again: (refund) => listSentAgain(refund) },
};

const RESERVED = ['payout_reserved'] as const;
const CAPTURED = [...RESERVED, 'payout_captured'] as const;

const PAYOUTS: ResourceRule<PayoutPart, ResourceEntryKind<'payout'>> = {
  collection: 'payouts',
  fields: PAYOUT_FIELDS,
  entries: {
    created: RESERVED,
    submitted: RESERVED,
    sent: CAPTURED,
    completed: [...CAPTURED, 'payout_sent_again'],
    failed: ({ sent_at }) =>
      sent_at === null ? [...RESERVED, 'payout_released'] : [...CAPTURED, 'payout_reversed'],
    returned: [...CAPTURED, 'payout_sent_again', 'payout_returned'],
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
    payout_sent_again: () => [],
  },
  steps: { payout_sent_again: (payout) => listSentAgain(payout) },
};

function listDeposits(payment: CryptoPaymentPart, step: DepositStep): ExpectedStep[] {
  const { deposits, connector, network, asset } = payment;
  const posted = deposits.filter((deposit) => listDepositSteps(deposit).includes(step));
  return posted.map((deposit) => {
    const currency = bookCurrency({ network, asset: deposit.asset ?? asset });
    return {
      step: depositKey(deposit),
      lines: buildDepositLines(step, connector, deposit),
      book: bookId({ ...payment, currency }),
    };
  });
}

const DEPOSITED = DEPOSIT_STEPS.map((step) => `crypto_payment_${step}` as const);

/** Each deposit has the entries of its own state, in any state of the payment. */
const CRYPTO_PAYMENTS: ResourceRule<CryptoPaymentPart, ResourceEntryKind<'crypto_payment'>> = {
  collection: 'crypto_payments',
  fields: CRYPTO_PAYMENT_FIELDS,
  entries: {
    awaiting_deposit: DEPOSITED,
    underpaid: DEPOSITED,
    held: DEPOSITED,
    received: DEPOSITED,
    expired: DEPOSITED,
  } satisfies Record<CryptoPaymentStatus, readonly EntryKind[]>,
  lines: {
    crypto_payment_held: () => [],
    crypto_payment_credited: () => [],
    crypto_payment_returned: () => [],
    crypto_payment_withdrawn: () => [],
    crypto_payment_sent_back: () => [],
    crypto_payment_written_off: () => [],
  },
  steps: Object.fromEntries(
    DEPOSIT_STEPS.map((step) => [
      `crypto_payment_${step}`,
      (payment: CryptoPaymentPart) => listDeposits(payment, step),
    ]),
  ),
  reportedVersions: ({ reported }) => reported.map(({ version }) => version),
};

function listNetworkFees({ status, ...settlement }: SettlementPart): ExpectedStep[] {
  const entry = buildNetworkFee({ ...settlement, _id: '' }, '');
  return entry === undefined ? [] : [{ lines: [...entry.legs], book: bookId(entry) }];
}

const SETTLEMENT_RESERVED = ['crypto_settlement_reserved'] as const;

const CRYPTO_SETTLEMENTS: ResourceRule<SettlementPart, ResourceEntryKind<'crypto_settlement'>> = {
  collection: 'crypto_settlements',
  fields: SETTLEMENT_FIELDS,
  entries: {
    pending: SETTLEMENT_RESERVED,
    sent: SETTLEMENT_RESERVED,
    completed: [...SETTLEMENT_RESERVED, 'crypto_settlement_captured', 'crypto_settlement_fee'],
    failed: [...SETTLEMENT_RESERVED, 'crypto_settlement_released', 'crypto_settlement_fee'],
  } satisfies Record<CryptoSettlementStatus, readonly EntryKind[]>,
  lines: {
    crypto_settlement_reserved: (part) =>
      ENTRY_LINES.crypto_settlement_reserved(settlementDraw(part)),
    crypto_settlement_captured: (part) =>
      ENTRY_LINES.crypto_settlement_captured(part.connector, settlementDraw(part)),
    crypto_settlement_released: (part) =>
      ENTRY_LINES.crypto_settlement_released(settlementDraw(part)),
    crypto_settlement_fee: () => [],
  },
  steps: { crypto_settlement_fee: listNetworkFees },
  reportedVersions: ({ status, version }) =>
    status === 'completed' || status === 'failed' ? [version] : [],
};

export const RESOURCE_CHECKS: readonly ResourceCheck[] = [
  resourceCheck('payment', PAYMENTS, comparePayments),
  resourceCheck('refund', REFUNDS, compareRefunds),
  resourceCheck('payout', PAYOUTS),
  resourceCheck('crypto_payment', CRYPTO_PAYMENTS),
  resourceCheck('crypto_settlement', CRYPTO_SETTLEMENTS),
];
