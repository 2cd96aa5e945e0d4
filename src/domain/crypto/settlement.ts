import type { EventType } from '../events/event';
import type { Failure } from '../failure';
import { type CommonAttention, type Decision, transition, unapplied } from '../lifecycle';
import { assetRules, parseUnits } from './assets';
import type { CryptoSettlementCallbackName } from './callback';

/** @see docs/api.md#settlements */
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

export const CRYPTO_SETTLEMENT_TRANSITIONS = {
  pending: ['sent', 'failed'],
  sent: ['completed', 'failed'],
  completed: [],
  failed: [],
} as const satisfies Record<CryptoSettlementStatus, readonly CryptoSettlementStatus[]>;

/** @see docs/webhooks.md#events */
export const CRYPTO_SETTLEMENT_EVENTS = {
  pending: undefined,
  sent: undefined,
  completed: 'crypto.settlement.completed',
  failed: 'crypto.settlement.failed',
} as const satisfies Record<CryptoSettlementStatus, EventType | undefined>;

export function isSettlementEnded(status: CryptoSettlementStatus): boolean {
  return status === 'completed' || status === 'failed';
}

export const CRYPTO_SETTLEMENT_IN_FLIGHT = CRYPTO_SETTLEMENT_STATUSES.filter(
  (status) => !isSettlementEnded(status),
);

export const CRYPTO_SETTLEMENT_ACTS = [
  'resubmit',
  'mark_failed',
  'mark_completed',
  'resolve_movement',
  'snooze',
  'acknowledge',
] as const;
export type CryptoSettlementAct = (typeof CRYPTO_SETTLEMENT_ACTS)[number];

/** Values of `ServiceAttention`. */
export type CryptoSettlementAttention =
  | 'settlement_overdue'
  | 'failed_after_completed'
  | 'moved_after_failed'
  | 'amount_differs'
  | CommonAttention;

export type CryptoSettlementDecision = Decision<CryptoSettlementStatus, CryptoSettlementAttention>;
const alreadyPassed = unapplied('the settlement has passed this state already');
const alreadyFailed = unapplied(
  'the settlement has failed; the balance has it back',
  'moved_after_failed',
);

/** Every status × every callback; no path skips a state. */
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

export function decideSettlement(
  status: CryptoSettlementStatus,
  callback: CryptoSettlementCallbackName,
): CryptoSettlementDecision {
  return DECISIONS[status][callback];
}

export function settlementPathTo(
  from: CryptoSettlementStatus,
  to: 'sent' | 'completed',
): readonly CryptoSettlementStatus[] {
  const decision = DECISIONS[from][to];
  return decision.kind === 'move' ? decision.to : [];
}

export const CRYPTO_SETTLEMENT_FAILURES = {
  chain: { code: 'settlement_failed', message: 'The settlement could not be sent.' },
  operator: { code: 'settlement_failed', message: 'The settlement was not sent.' },
} as const satisfies Record<string, Failure>;

/** @see docs/api.md#amounts-that-misbehave */
const SANDBOX_AMOUNTS = { from: 66_641n, to: 66_649n };

/**
 * Smallest units: the service pays the network for each settlement.
 * @param amount requested; null for the whole balance
 */
export function leastSettlement(
  { asset, network, livemode }: { asset: string; network: string; livemode: boolean },
  amount: bigint | null,
): bigint {
  const { from, to } = SANDBOX_AMOUNTS;
  if (!livemode && amount !== null && amount >= from && amount <= to) return amount;
  return parseUnits(assetRules(asset, network)?.settled_from ?? '1');
}

export const SETTLEMENT_DUE_SECONDS = 6 * 3_600;

export function cryptoSettlementWorkflowId(cryptoSettlementId: string): string {
  return `crypto-settlement:${cryptoSettlementId}`;
}
