import { omitUndefined } from '../../domain/defined';
import type { PaymentStatus } from '../../domain/payment/payment';
import { sumAmounts } from '../../domain/payment/receipt';
import { bookId, type EntryKind, type ResourceEntryKind } from '../../ledger/entries';
import { ENTRY_LINES } from '../../ledger/entry-lines';
import { receiptKinds, returnedByBank, settledAmount } from '../../ledger/resource-entries';
import type { PaymentDocument } from '../../store/payments';
import type { ExpectedKinds, ExpectedStep, ResourceRule } from '../rule';
import { COMMON } from './common';

const PAYMENT_FIELDS = [
  ...COMMON,
  'amount',
  'connector',
  'settled_amount',
  'receipts',
  'disputes',
] as const;

type PaymentPart = Pick<PaymentDocument, (typeof PAYMENT_FIELDS)[number]>;

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

export const PAYMENTS: ResourceRule<PaymentPart, ResourceEntryKind<'payment'>> = {
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
