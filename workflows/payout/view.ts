import { isEnded, type PayoutAttention, type PayoutStatus } from '../../src/domain/payout';
import { note } from '../shared/life';
import { FINAL, MALFORMED_CURE, showLife, type View, type Waiting } from '../shared/view';
import type { PayoutLife } from './life';

const UNSENT = '`resubmit`, `mark_completed`, `mark_failed`, `snooze`';

const COMPLETED: Waiting = {
  what: 'nothing: it reached the recipient; where the rail allows it, it may still come back',
  levers: 'none here; on the command line `payout act ID mark_returned`, which starts it again',
};

const OVERDUE_CURE =
  '`resubmit` asks the bank what it knows and sends the payout again only when it is unknown ' +
  'there. When the bank has told you what became of it: `mark_completed` or `mark_failed`; ' +
  '`snooze` to wait some more.';

const GIVEN_BACK =
  'Ask the bank; if the recipient has the money, the merchant was credited too much.';

const VIEW: View<PayoutStatus, PayoutAttention> = {
  waitsFor: {
    created: { what: 'the bank to take it', levers: UNSENT },
    submitted: { what: 'the bank to hand it to the scheme', levers: UNSENT },
    sent: {
      what: 'the bank to say that it reached the recipient',
      levers: '`mark_completed`, `mark_failed`, `mark_returned`, `snooze`',
    },
    completed: COMPLETED,
    failed: FINAL,
    returned: FINAL,
  },
  cures: {
    not_submitted: `The bank has not taken it in its time. ${OVERDUE_CURE}`,
    not_sent: `The bank has not handed it to the scheme in its time. ${OVERDUE_CURE}`,
    not_completed:
      'The bank has not said in its time what became of it. Ask the bank, then send the update ' +
      '`mark_completed`, `mark_failed` or `mark_returned`; `snooze` to wait some more.',
    restarted_in_flight:
      'Its workflow was ended from outside and has started again. It goes on by itself: the bank ' +
      'is asked before anything is sent again. Find out who ended it; `snooze` clears this mark.',
    failed_after_completed:
      'The bank reported a failure after the payout had completed; nothing moved. Ask the bank; ' +
      'if the money is back, send `mark_returned`.',
    moved_after_failed:
      'The bank reported that the payout went on after it had failed and its money was given ' +
      `back; nothing moved. ${GIVEN_BACK}`,
    moved_after_returned:
      'The bank reported another end after the payout had come back and its amount was ' +
      `credited; nothing moved. ${GIVEN_BACK}`,
    second_return:
      'The bank reported a second return; the amount was credited once. Ask the bank whether ' +
      'both are the same.',
    return_too_late:
      'The bank reported a return more than 60 days later; nothing moved. Ask the bank; if the ' +
      'money is there, send `mark_returned`.',
    return_not_possible:
      'The bank reported a return on a rail where nothing comes back; nothing moved. Ask the bank.',
    malformed_callback: MALFORMED_CURE,
  },
};

/** Brings what operators see of the payout up to date. */
export function show(life: PayoutLife): void {
  showLife(life, VIEW, until(life));
}

/** One more line of what was tried, shown at once. */
export function tell(life: PayoutLife, line: string): void {
  note(life, line);
  show(life);
}

function until({ facts, status, snoozedUntil }: PayoutLife): string {
  if (facts === undefined || isEnded(status)) return '';
  return `, due ${new Date(snoozedUntil ?? facts.due_at_ms).toISOString()}`;
}
