import { isFinalRefund, type RefundAttention, type RefundStatus } from '../../src/domain/refund';
import { note } from '../shared/life';
import { FINAL, MALFORMED_CURE, showLife, type View } from '../shared/view';
import type { RefundLife } from './life';

const VIEW: View<RefundStatus, RefundAttention> = {
  waitsFor: {
    processing: {
      what: 'the bank to say that the customer has the money',
      levers: '`mark_settled`, `mark_failed`, `snooze`',
    },
    settled: FINAL,
    failed: FINAL,
  },
  cures: {
    refund_overdue:
      'The bank has not said what became of it. Ask the bank, then send the update ' +
      '`mark_settled` or `mark_failed`; `snooze` to wait some more.',
    failed_after_settled: 'The bank reported a failure after it had settled. Ask the bank.',
    settled_after_failed:
      'The bank reported that it settled after it had failed and its amount was given back. ' +
      'Ask the bank; if the customer has the money, the merchant was credited too much.',
    malformed_callback: MALFORMED_CURE,
  },
};

/** Brings what operators see of the refund up to date. */
export function show(life: RefundLife): void {
  showLife(life, VIEW, until(life));
}

/** One more line of what was tried, shown at once. */
export function tell(life: RefundLife, line: string): void {
  note(life, line);
  show(life);
}

function until({ facts, status, snoozedUntil }: RefundLife): string {
  if (facts === undefined || isFinalRefund(status)) return '';
  return `, due ${new Date(snoozedUntil ?? facts.due_at_ms).toISOString()}`;
}
