import type { LifecycleActivities } from '../../activities';
import type { Part } from '../../src/service/operators/reconcile/reconcile';

/** Part of a rebuild that repeats the activity first; null where it writes nothing. */
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
  recordNetworkFee: 'life',
  recordUnapplied: 'life',
  recordRefused: 'life',
  recordMovement: 'life',
  recordReturn: 'life',
  resolveMovement: 'life',
  openDispute: 'life',
  recordDisputeReport: 'life',
  recordDisputeStep: 'life',
  recordDisputeMove: 'life',
  recordDisputeAttention: 'life',
  recordDispute: 'disputes',
  clawBack: 'disputes',
  liftDispute: 'disputes',
  loadPayment: null,
  loadRefund: null,
  loadPayout: null,
  loadDispute: null,
  forwardDispute: null,
  forwardDisputeAct: null,
  loadCryptoPayment: null,
  loadCryptoSettlement: null,
  releaseCryptoClaim: null,
  authorizeAct: null,
} as const satisfies Record<keyof LifecycleActivities, Part | null>;

type Parts = typeof PARTS;
type WriteName = { [Name in keyof Parts]: Parts[Name] extends Part ? Name : never }[keyof Parts];

export interface WriteOf<Name extends WriteName> {
  activity: Name;
  input: Parameters<LifecycleActivities[Name]>[0];
  result: Awaited<ReturnType<LifecycleActivities[Name]>>;
}

export type Write = { [Name in WriteName]: WriteOf<Name> }[WriteName];

type Writers = {
  [Name in WriteName]: (input: WriteOf<Name>['input']) => Promise<WriteOf<Name>['result']>;
};

export function repeat<Name extends WriteName>(
  activities: Writers,
  { activity, input }: WriteOf<Name>,
): Promise<WriteOf<Name>['result']> {
  return activities[activity](input);
}

export interface Step {
  activity: string;
  input: unknown;
  result?: unknown;
}

const parts = new Map<string, Part | null>(Object.entries(PARTS));

export function isWrite(step: Step | Write): step is Write {
  return Boolean(parts.get(step.activity)) && typeof step.input === 'object';
}

export function getPart({ activity }: Write): Part | null {
  return PARTS[activity];
}
