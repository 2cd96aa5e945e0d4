import type { Failure } from '../lifecycle';
import type { EventType } from '../webhook/event';
import type { CryptoSettlementCallbackName } from './callback';

/** States of a crypto settlement. @see docs/api.md#settlements */
export const CRYPTO_SETTLEMENT_STATUSES = [
  /** Accepted, with the amount reserved; not on the chain yet. */
  'pending',
  /** Broadcast. */
  'sent',
  /** Confirmed. Final. */
  'completed',
  /** Nothing was sent; the amount is back in the balance. Final. */
  'failed',
] as const;

export type CryptoSettlementStatus = (typeof CRYPTO_SETTLEMENT_STATUSES)[number];

/** Allowed transitions. */
export const CRYPTO_SETTLEMENT_TRANSITIONS = {
  pending: ['sent', 'failed'],
  sent: ['completed', 'failed'],
  completed: [],
  failed: [],
} as const satisfies Record<CryptoSettlementStatus, readonly CryptoSettlementStatus[]>;

/** Event of each state; `sent` emits none. @see docs/webhooks.md#events */
export const CRYPTO_SETTLEMENT_EVENTS = {
  pending: undefined,
  sent: undefined,
  completed: 'crypto.settlement.completed',
  failed: 'crypto.settlement.failed',
} as const satisfies Record<CryptoSettlementStatus, EventType | undefined>;

export function isSettlementEnded(status: CryptoSettlementStatus): boolean {
  return status === 'completed' || status === 'failed';
}

/** States in which the workflow runs. */
export const CRYPTO_SETTLEMENT_IN_FLIGHT = CRYPTO_SETTLEMENT_STATUSES.filter(
  (status) => !isSettlementEnded(status),
);

export const CRYPTO_SETTLEMENT_ACTS = [
  'resubmit',
  'mark_failed',
  'mark_completed',
  'snooze',
] as const;
export type CryptoSettlementAct = (typeof CRYPTO_SETTLEMENT_ACTS)[number];

/** Why a settlement needs an operator: the values of `ServiceAttention`. */
export type CryptoSettlementAttention =
  | 'settlement_overdue'
  | 'failed_after_completed'
  | 'moved_after_failed'
  /** The amount on the chain differs from the amount to send. */
  | 'amount_differs'
  | 'malformed_callback'
  | 'sender_not_known';

/** Effect of a callback on a settlement in a given state. */
export type CryptoSettlementDecision =
  | { kind: 'move'; to: readonly CryptoSettlementStatus[] }
  | { kind: 'unapplied'; reason: string; attention?: CryptoSettlementAttention };

const transition = (...to: CryptoSettlementStatus[]): CryptoSettlementDecision => ({
  kind: 'move',
  to,
});
const unapplied = (
  reason: string,
  attention?: CryptoSettlementAttention,
): CryptoSettlementDecision => ({
  kind: 'unapplied',
  reason,
  ...(attention === undefined ? {} : { attention }),
});
const alreadyPassed = unapplied('the settlement has passed this state already');
const alreadyFailed = unapplied(
  'the settlement has failed; the balance has it back',
  'moved_after_failed',
);

/** Decisions for every status × every callback; no path skips a state. */
const DECISIONS: Record<
  CryptoSettlementStatus,
  Record<CryptoSettlementCallbackName, CryptoSettlementDecision>
> = {
  pending: {
    sent: transition('sent'),
    completed: transition('sent', 'completed'),
    failed: transition('failed'),
  },
  sent: { sent: alreadyPassed, completed: transition('completed'), failed: transition('failed') },
  completed: {
    sent: alreadyPassed,
    completed: alreadyPassed,
    failed: unapplied('a completed settlement never fails', 'failed_after_completed'),
  },
  failed: { sent: alreadyFailed, completed: alreadyFailed, failed: alreadyPassed },
};

/** Decides the effect of `callback` on a settlement in `status`; pure. */
export function decideSettlement(
  status: CryptoSettlementStatus,
  callback: CryptoSettlementCallbackName,
): CryptoSettlementDecision {
  return DECISIONS[status][callback];
}

/** Returns the path of states to the reported one; empty if there is none. */
export function settlementPathTo(
  from: CryptoSettlementStatus,
  to: 'sent' | 'completed',
): readonly CryptoSettlementStatus[] {
  const decision = DECISIONS[from][to];
  return decision.kind === 'move' ? decision.to : [];
}

/** Failures without a reason from the connector. */
export const CRYPTO_SETTLEMENT_FAILURES = {
  chain: { code: 'settlement_failed', message: 'The settlement could not be sent.' },
  operator: { code: 'settlement_failed', message: 'The settlement was not sent.' },
} as const satisfies Record<string, Failure>;

/** Smallest units that a settlement of the whole balance needs at least. */
export const SMALLEST_SETTLEMENT = 1n;

/** Time after which an uncompleted settlement needs attention. */
export const SETTLEMENT_DUE_SECONDS = 6 * 3_600;

export function cryptoSettlementWorkflowId(cryptoSettlementId: string): string {
  return `crypto-settlement:${cryptoSettlementId}`;
}
