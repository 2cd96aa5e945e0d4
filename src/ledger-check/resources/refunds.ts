import type { RefundStatus } from '../../domain/refund/refund';
import { sumPosted } from '../../domain/sent-held';
import type { EntryKind, ResourceEntryKind } from '../../ledger/entries';
import { ENTRY_LINES } from '../../ledger/entry-lines';
import { settledAmount } from '../../ledger/resource-entries';
import type { RefundDocument } from '../../store/refunds';
import type { ExpectedKinds, ResourceRule } from '../rule';
import { COMMON, listSentAgain, listSentHeld, listSentResolved } from './common';

const REFUND_FIELDS = [
  ...COMMON,
  'amount',
  'connector',
  'settled_amount',
  'sent_late',
  'sent_again',
  'sent_held',
] as const;

export type RefundPart = Pick<RefundDocument, (typeof REFUND_FIELDS)[number]>;
const ACCEPTED = ['refund_accepted', 'refund_sent_held', 'refund_sent_resolved'] as const;
const FAILED_REFUND = [...ACCEPTED, 'refund_failed', 'refund_sent_again'] as const;

export const REFUNDS: ResourceRule<RefundPart, ResourceEntryKind<'refund'>> = {
  collection: 'refunds',
  fields: REFUND_FIELDS,
  entries: {
    processing: ACCEPTED,
    settled: [...ACCEPTED, 'refund_settled', 'refund_sent_again'],
    failed: ({ sent_late }) => [
      ...FAILED_REFUND,
      ...(sent_late ? (['refund_sent_late'] as const) : []),
    ],
  } satisfies Record<RefundStatus, ExpectedKinds<RefundPart, EntryKind>>,
  lines: {
    refund_accepted: ({ amount }) => ENTRY_LINES.refund_accepted(amount),
    refund_settled: (refund) =>
      ENTRY_LINES.refund_settled(
        refund.connector,
        refund.amount,
        settledAmount(refund),
        Number(sumPosted(refund)),
      ),
    refund_failed: ({ amount }) => ENTRY_LINES.refund_failed(amount),
    refund_sent_late: ({ connector, sent_late }) =>
      ENTRY_LINES.refund_sent_late(connector, sent_late?.held ?? 0, sent_late?.owed ?? 0),
    refund_sent_again: () => [],
    refund_sent_held: () => [],
    refund_sent_resolved: () => [],
  },
  steps: {
    refund_sent_again: (refund) => listSentAgain(refund),
    refund_sent_held: (refund) => listSentHeld('refund', refund),
    refund_sent_resolved: (refund) => listSentResolved('refund', refund),
  },
};
