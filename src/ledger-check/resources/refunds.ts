import type { RefundStatus } from '../../domain/refund/refund';
import type { EntryKind, ResourceEntryKind } from '../../ledger/entries';
import { ENTRY_LINES } from '../../ledger/entry-lines';
import { settledAmount } from '../../ledger/resource-entries';
import type { RefundDocument } from '../../store/refunds';
import type { ExpectedKinds, ResourceRule } from '../rule';
import { COMMON, listHeld, listResolved, sumFromSuspense, type WithMovements } from './common';

const REFUND_FIELDS = [...COMMON, 'amount', 'connector', 'settled_amount'] as const;

export type RefundPart = Pick<RefundDocument, (typeof REFUND_FIELDS)[number]> & WithMovements;

const ACCEPTED = ['refund_accepted', 'refund_held', 'refund_resolved'] as const;

export const REFUNDS: ResourceRule<RefundPart, ResourceEntryKind<'refund'>> = {
  collection: 'refunds',
  fields: REFUND_FIELDS,
  entries: {
    processing: ACCEPTED,
    settled: [...ACCEPTED, 'refund_settled'],
    failed: [...ACCEPTED, 'refund_failed'],
  } satisfies Record<RefundStatus, ExpectedKinds<RefundPart, EntryKind>>,
  lines: {
    refund_accepted: ({ amount }) => ENTRY_LINES.refund_accepted(amount),
    refund_settled: (refund) =>
      ENTRY_LINES.refund_settled(
        refund.connector,
        refund.amount,
        settledAmount(refund),
        Number(sumFromSuspense(refund.movements, 'out')),
      ),
    refund_failed: ({ amount }) => ENTRY_LINES.refund_failed(amount),
    refund_held: () => [],
    refund_resolved: () => [],
  },
  steps: {
    refund_held: (refund) => listHeld('refund', refund),
    refund_resolved: (refund) => listResolved('refund', refund),
  },
};
