import type { LifecycleActivities } from '../../activities';
import { BOOKINGS } from '../../src/reconcile/standing';

/** Activities that write to the record: repeated in their order, they write it anew. */
const WRITES = [
  'openPayment',
  'openRefund',
  'openPayout',
  'abandonRefund',
  'abandonPayout',
  'recordPaymentMove',
  'recordRefundMove',
  'recordPayoutMove',
  'recordPaymentAttention',
  'recordRefundAttention',
  'recordPayoutAttention',
  'recordUnapplied',
  'recordLateMoney',
  'recordLateReversed',
  'recordDispute',
  'clawBack',
] as const satisfies readonly (keyof LifecycleActivities)[];

type WriteName = (typeof WRITES)[number];

/** Write that a workflow asked for, and its answer. */
export type Write = {
  [Name in WriteName]: {
    activity: Name;
    input: Parameters<LifecycleActivities[Name]>[0];
    result: Awaited<ReturnType<LifecycleActivities[Name]>>;
  };
}[WriteName];

/** A step of a workflow as its replay tells it. */
export interface Step {
  activity: string;
  input: unknown;
  result?: unknown;
}

/**
 * Whether a write books money that went wrong. Refunds from before it must be there first, since a
 * disputed payment takes none.
 */
export function isBooking({ activity }: Write): boolean {
  return BOOKINGS.some((name) => name === activity);
}

/** Whether a step is a write. Its input was made by the workflow's own code, which is typed. */
export function isWrite(step: Step | Write): step is Write {
  return WRITES.some((name) => name === step.activity) && typeof step.input === 'object';
}
