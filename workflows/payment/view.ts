import { isFinal, type PaymentAttention, type PaymentStatus } from '../../src/domain/payment';
import { FINAL, MALFORMED_CURE, showLife, type View } from '../shared/view';
import type { PaymentLife } from './life';

const VIEW: View<PaymentStatus, PaymentAttention> = {
  waitsFor: {
    created: {
      what: 'the bank to open a session for the customer',
      levers: '`mark_settled`, `mark_failed`',
    },
    awaiting_customer: {
      what: 'the customer to pay',
      levers: '`mark_settled`, `mark_failed`',
    },
    authorized: {
      what: 'the bank to settle; it never expires',
      levers: '`mark_settled`, `mark_failed`, `snooze`',
    },
    settled: FINAL,
    failed: FINAL,
    cancelled: FINAL,
    expired: FINAL,
  },
  cures: {
    settlement_overdue:
      'Settlement is overdue. Ask the bank, then send the update `mark_settled` or `mark_failed`; ' +
      '`snooze` to wait some more.',
    late_money_pending:
      'The customer paid after the payment had ended; the bank is being told to give it back. ' +
      'If that lasts, check the connector.',
    late_authorization_voided:
      'The customer authorised after the payment had ended; the bank released it. Nothing to do.',
    late_settlement_reversed:
      'The money moved after the payment had ended; the bank was told to send it back. ' +
      'Check that it did.',
    late_settlement_not_reversed:
      'The money moved after the payment had ended and the bank refused to send it back. ' +
      'Return it by hand and tell the merchant.',
    failed_after_settled: 'The bank reported a failure after it had settled. Ask the bank.',
    expired_after_authorized: 'The bank reported an expiry after it had authorised. Ask the bank.',
    malformed_callback: MALFORMED_CURE,
  },
};

/** Brings what operators see of the payment up to date. */
export function show(life: PaymentLife): void {
  showLife(life, VIEW, until(life));
}

function until({ facts, status, since, snoozedUntil }: PaymentLife): string {
  if (facts === undefined || isFinal(status)) return '';
  if (status !== 'authorized') return `, until ${new Date(facts.expires_at_ms).toISOString()}`;
  const due = snoozedUntil ?? since + facts.settlement_due_seconds * 1_000;
  return `, due ${new Date(due).toISOString()}`;
}
