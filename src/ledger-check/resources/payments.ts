import { sumFees } from '../../domain/banks/movement';
import { omitUndefined } from '../../domain/defined';
import { isDisputeClosed } from '../../domain/dispute/dispute';
import { computeBorneFee } from '../../domain/dispute/report';
import type { PaymentStatus } from '../../domain/payment/payment';
import type { EntryKind, ResourceEntryKind } from '../../ledger/entries';
import { ENTRY_LINES } from '../../ledger/entry-lines';
import { settledAmount } from '../../ledger/resource-entries';
import type { PaymentDocument } from '../../store/payments';
import { compareValues } from '../compare';
import {
  type CheckedDispute,
  type CheckedMovement,
  COMMON,
  type ExpectedKinds,
  type ExpectedStep,
  expectOne,
  listHeld,
  listResolved,
  type ResourceRule,
  sumFromSuspense,
} from '../rule';

const PAYMENT_FIELDS = [
  ...COMMON,
  'amount',
  'connector',
  'settled_amount',
  'disputed',
  'disputes_open',
  'available_on',
] as const;

type PaymentPart = Pick<PaymentDocument, (typeof PAYMENT_FIELDS)[number]> & {
  movements: readonly CheckedMovement[];
  disputes: readonly CheckedDispute[];
};

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
  { disputes, connector }: PaymentPart,
  kind: (typeof DISPUTED)[number],
): ExpectedStep[] {
  return disputes.flatMap((dispute) =>
    dispute.transfers.flatMap((transfer): ExpectedStep[] => {
      const { direction, step, amount, held, owed, is_reversed } = transfer;
      const fee = computeBorneFee(transfer);
      const isOut = direction === 'out';
      if (kind !== (isOut ? `payment_${dispute.kind}` : 'payment_dispute_won')) return [];
      // What came back by a reversal has that entry.
      if (!isOut && is_reversed) return [];
      // The service's own fee is on the bank's statement only.
      if (amount + fee === 0) return [];
      const lines = {
        payment_clawed_back: ENTRY_LINES.payment_clawed_back(connector, held, owed),
        payment_dispute_opened: ENTRY_LINES.payment_dispute_opened(connector, held, owed, fee),
        payment_dispute_won: ENTRY_LINES.payment_dispute_won(connector, amount, fee),
      }[kind];
      return [{ ...omitUndefined({ step }), lines }];
    }),
  );
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
  steps: {
    payment_settled: ({ movements, ...payment }) =>
      expectOne(
        ENTRY_LINES.payment_settled(
          payment.connector,
          settledAmount(payment),
          Number(sumFromSuspense(movements, 'in')),
          sumFees(movements.filter(({ dispute }) => dispute === undefined)),
          payment.available_on,
        ),
      ),
    payment_held: (payment) => listHeld('payment', payment),
    payment_resolved: (payment) => listResolved('payment', payment),
    payment_clawed_back: (payment) => listDisputeSteps(payment, 'payment_clawed_back'),
    payment_dispute_opened: (payment) => listDisputeSteps(payment, 'payment_dispute_opened'),
    payment_dispute_won: (payment) => listDisputeSteps(payment, 'payment_dispute_won'),
  },
  compare: ({ _id, disputes, disputed = 0, disputes_open = 0 }) => {
    const taken = disputes.reduce((sum, { amount }) => sum + amount, 0);
    const open = disputes.filter(({ status }) => !isDisputeClosed(status)).length;
    return [
      ...compareValues('disputed_differs', _id, 'disputed', taken, disputed),
      ...compareValues('disputed_differs', _id, 'disputes_open', open, disputes_open),
    ];
  },
};
