import type { CryptoSettlementCallbackName } from './crypto-callback';
import type { EventType } from './event';
import type { Failure } from './lifecycle';

/** States of a crypto settlement. @see docs/api.md#settlements */
export const CRYPTO_SETTLEMENT_STATUSES = [
  /** Accepted with its money reserved; not on the chain yet. */
  'pending',
  /** Broadcast. */
  'sent',
  /** Deep enough in the chain. Final. */
  'completed',
  /** Nothing has left; the balance has it back. Final. */
  'failed',
] as const;

export type CryptoSettlementStatus = (typeof CRYPTO_SETTLEMENT_STATUSES)[number];

/** Lawful moves; a move that is not listed does not happen. */
export const CRYPTO_SETTLEMENT_MOVES = {
  pending: ['sent', 'failed'],
  sent: ['completed', 'failed'],
  completed: [],
  failed: [],
} as const satisfies Record<CryptoSettlementStatus, readonly CryptoSettlementStatus[]>;

/** Event of each move; `sent` emits none. @see docs/webhooks.md#events */
export const CRYPTO_SETTLEMENT_EVENTS = {
  pending: undefined,
  sent: undefined,
  completed: 'crypto.settlement.completed',
  failed: 'crypto.settlement.failed',
} as const satisfies Record<CryptoSettlementStatus, EventType | undefined>;

export function isSettlementEnded(status: CryptoSettlementStatus): boolean {
  return status === 'completed' || status === 'failed';
}

/** States in which its workflow runs. */
export const CRYPTO_SETTLEMENT_IN_FLIGHT = CRYPTO_SETTLEMENT_STATUSES.filter(
  (status) => !isSettlementEnded(status),
);

/** Acts that an operator may ask of a settlement. */
export const CRYPTO_SETTLEMENT_ACTS = [
  'resubmit',
  'mark_failed',
  'mark_completed',
  'snooze',
] as const;
export type CryptoSettlementAct = (typeof CRYPTO_SETTLEMENT_ACTS)[number];

/** Reasons why a settlement needs a person: the values of `ServiceAttention`. */
export type CryptoSettlementAttention =
  | 'settlement_overdue'
  | 'failed_after_completed'
  | 'moved_after_failed'
  /** The chain shows another amount than was to be sent. */
  | 'amount_differs'
  | 'malformed_callback'
  | 'sender_not_known';

/** Effect of a callback on a settlement in a given state. */
export type CryptoSettlementDecision =
  | { kind: 'move'; to: readonly CryptoSettlementStatus[] }
  | { kind: 'unapplied'; reason: string; attention?: CryptoSettlementAttention };

const move = (...to: CryptoSettlementStatus[]): CryptoSettlementDecision => ({ kind: 'move', to });
const unapplied = (
  reason: string,
  attention?: CryptoSettlementAttention,
): CryptoSettlementDecision => ({
  kind: 'unapplied',
  reason,
  ...(attention === undefined ? {} : { attention }),
});
const passed = unapplied('the settlement has passed this state already');
const gone = unapplied('the settlement has failed; the balance has it back', 'moved_after_failed');

/** Decisions for every status × every callback; the record skips no state. */
const DECISIONS: Record<
  CryptoSettlementStatus,
  Record<CryptoSettlementCallbackName, CryptoSettlementDecision>
> = {
  pending: { sent: move('sent'), completed: move('sent', 'completed'), failed: move('failed') },
  sent: { sent: passed, completed: move('completed'), failed: move('failed') },
  completed: {
    sent: passed,
    completed: passed,
    failed: unapplied('a completed settlement never fails', 'failed_after_completed'),
  },
  failed: { sent: gone, completed: gone, failed: passed },
};

/** Decides the effect of `callback` on a settlement in `status`; pure. */
export function decideSettlement(
  status: CryptoSettlementStatus,
  callback: CryptoSettlementCallbackName,
): CryptoSettlementDecision {
  return DECISIONS[status][callback];
}

/** States passed through on the way to the one that is reported. */
export function settlementWayTo(
  from: CryptoSettlementStatus,
  to: 'sent' | 'completed',
): readonly CryptoSettlementStatus[] {
  const decision = DECISIONS[from][to];
  return decision.kind === 'move' ? decision.to : [];
}

/** Failures for which the connector gave no reason of its own. */
export const CRYPTO_SETTLEMENT_FAILURES = {
  chain: { code: 'settlement_failed', message: 'The settlement could not be sent.' },
  operator: { code: 'settlement_failed', message: 'The settlement was not sent.' },
} as const satisfies Record<string, Failure>;

/** Time after which operators are told of a settlement that has not completed. */
export const SETTLEMENT_DUE_SECONDS = 6 * 3_600;

/** Id of the workflow that runs a settlement's lifecycle. */
export function cryptoSettlementWorkflowId(cryptoSettlementId: string): string {
  return `crypto-settlement:${cryptoSettlementId}`;
}
