import { defineSearchAttributeKey, type SearchAttributeUpdatePair } from '@temporalio/common';
import { setCurrentDetails, upsertSearchAttributes } from '@temporalio/workflow';
import { isFinal, type PaymentAttention, type PaymentStatus } from '../src/domain/payment';
import type { PaymentLife } from './payment-life';

const FINAL = { what: 'nothing: final', levers: 'none' };

const key = {
  status: defineSearchAttributeKey('ServiceStatus', 'KEYWORD'),
  attention: defineSearchAttributeKey('ServiceAttention', 'KEYWORD'),
};

/** What the payment waits for, and what an operator can do about it. */
const WAITS_FOR: Record<PaymentStatus, { what: string; levers: string }> = {
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
};

/** Why it needs a person, and what mends it. */
const CURES: Record<PaymentAttention, string> = {
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
  malformed_callback: 'A callback could not be read; it is in the journal. Ask the connector team.',
};

/** Brings the list (search attributes, only what changed) and the details up to date. */
export function show(life: PaymentLife): void {
  const pairs: SearchAttributeUpdatePair[] = [];
  if (life.shown.status !== life.status) pairs.push({ key: key.status, value: life.status });
  if (life.shown.attention !== life.attention) {
    pairs.push({ key: key.attention, value: life.attention }); // null unsets it
  }
  if (pairs.length > 0) upsertSearchAttributes(pairs);
  life.shown = { status: life.status, attention: life.attention };
  showDetails(life);
}

function showDetails(life: PaymentLife): void {
  const { what, levers } = WAITS_FOR[life.status];
  const lines = [
    `**${life.status}** since ${new Date(life.since).toISOString()} (version ${life.version})`,
    '',
    `Waits for: ${what}${until(life)}. Updates: ${levers}.`,
  ];
  if (life.attention !== null) lines.push('', `⚠ **${life.attention}**: ${CURES[life.attention]}`);
  if (life.journal.length > 0) lines.push('', ...life.journal.map((line) => `- ${line}`));
  setCurrentDetails(lines.join('\n'));
}

function until({ facts, status, since, snoozedUntil }: PaymentLife): string {
  if (facts === undefined || isFinal(status)) return '';
  if (status !== 'authorized') return `, until ${new Date(facts.expires_at_ms).toISOString()}`;
  const due = snoozedUntil ?? since + facts.settlement_due_seconds * 1_000;
  return `, due ${new Date(due).toISOString()}`;
}
