import type { LifecycleActivities } from '../../activities';
import type { Part } from '../../src/service/reconcile/rebuilder';

/**
 * Part of a rebuild in which each activity is repeated; null where it writes nothing that a
 * database could have lost.
 */
const PARTS = {
  openPayment: 'life',
  openRefund: 'life',
  openPayout: 'life',
  abandonRefund: 'life',
  abandonPayout: 'life',
  recordPaymentMove: 'life',
  recordRefundMove: 'life',
  recordPayoutMove: 'life',
  recordPaymentAttention: 'life',
  recordRefundAttention: 'life',
  recordPayoutAttention: 'life',
  openCryptoPayment: 'life',
  openCryptoSettlement: 'life',
  recordCryptoPaymentMove: 'life',
  recordCryptoPaymentAttention: 'life',
  recordCryptoSettlementMove: 'life',
  recordCryptoSettlementAttention: 'life',
  recordUnapplied: 'life',
  recordRefused: 'life',
  recordLateMoney: 'bookings',
  recordLateReversed: 'bookings',
  recordDispute: 'bookings',
  clawBack: 'bookings',
  loadPayment: null,
  loadRefund: null,
  loadPayout: null,
  loadCryptoPayment: null,
  loadCryptoSettlement: null,
  releaseCryptoClaim: null,
} as const satisfies Record<keyof LifecycleActivities, Part | null>;

type Parts = typeof PARTS;
type WriteName = { [Name in keyof Parts]: Parts[Name] extends Part ? Name : never }[keyof Parts];

/** Write of a workflow, with its answer. */
export type Write = {
  [Name in WriteName]: {
    activity: Name;
    input: Parameters<LifecycleActivities[Name]>[0];
    result: Awaited<ReturnType<LifecycleActivities[Name]>>;
  };
}[WriteName];

export interface Step {
  activity: string;
  input: unknown;
  result?: unknown;
}

const parts = new Map<string, Part | null>(Object.entries(PARTS));

/** Whether a step is a write, with an input of the workflow's own, typed code. */
export function isWrite(step: Step | Write): step is Write {
  return Boolean(parts.get(step.activity)) && typeof step.input === 'object';
}

/** Part of a rebuild that repeats a write: refunds come before the dispute of their payment. */
export function getPart({ activity }: Write): Part | null {
  return PARTS[activity];
}
