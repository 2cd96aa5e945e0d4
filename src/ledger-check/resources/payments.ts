import { omitUndefined } from '../../domain/defined';
import type { PaymentStatus } from '../../domain/payment/payment';
import type { EntryKind, ResourceEntryKind } from '../../ledger/entries';
import { ENTRY_LINES } from '../../ledger/entry-lines';
import { returnedByBank, settledAmount } from '../../ledger/resource-entries';
import type { PaymentDocument } from '../../store/payments';
import type { ExpectedKinds, ExpectedStep, ResourceRule } from '../rule';
import { COMMON, listHeld, listResolved, sumFromSuspense, type WithMovements } from './common';

const PAYMENT_FIELDS = [...COMMON, 'amount', 'connector', 'settled_amount', 'disputes'] as const;

type PaymentPart = Pick<PaymentDocument, (typeof PAYMENT_FIELDS)[number]> & WithMovements;

/** Movements may be in suspense, and leave it, in any state. */
const MOVED = [
  'payment_held',
  'payment_resolved',
] as const satisfies ResourceEntryKind<'payment'>[];

/** Each dispute took money, and may have given it back. */
const DISPUTED = [
  'payment_clawed_back',
  'payment_dispute_opened',
  'payment_dispute_won',
] as const satisfies ResourceEntryKind<'payment'>[];

const SETTLED = [...MOVED, 'payment_settled', ...DISPUTED] as const;

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
    created: MOVED,
    awaiting_customer: MOVED,
    authorized: MOVED,
    settled: SETTLED,
    failed: MOVED,
    cancelled: MOVED,
    expired: MOVED,
  } satisfies Record<PaymentStatus, ExpectedKinds<PaymentPart, EntryKind>>,
  lines: {
    payment_settled: ({ movements, ...payment }) =>
      ENTRY_LINES.payment_settled(
        payment.connector,
        settledAmount(payment),
        Number(sumFromSuspense(movements, 'in')),
      ),
    payment_held: () => [],
    payment_resolved: () => [],
    payment_clawed_back: () => [],
    payment_dispute_opened: () => [],
    payment_dispute_won: () => [],
  },
  steps: Object.fromEntries([
    ['payment_held', (payment: PaymentPart) => listHeld('payment', payment)],
    ['payment_resolved', (payment: PaymentPart) => listResolved('payment', payment)],
    ...DISPUTED.map((kind) => [kind, (payment: PaymentPart) => listDisputeSteps(payment, kind)]),
  ]),
};
