/** Type of the workflow that looks every hour for what was forgotten. */
export const AUDIT_WORKFLOW = 'audit';

/** Number of ids that a finding names. */
export const NAMED_MAX = 20;

/** Days for which a parked callback asks for a person; it is counted for ever. */
export const PARKED_ASKS_DAYS = 7;

/** Payments, refunds and payouts that are under way without a workflow. */
export interface OrphansFound {
  checked: number;
  found: number;
  /** Workflow ids of the first of them. */
  named: string[];
}

/** Deliveries that had no workflow. */
export interface DeliveriesFound {
  checked: number;
  restarted: number;
  /** Ids of the first events of them. */
  named: string[];
}

/** Callbacks that no workflow had heard of. */
export interface CallbacksFound {
  delivered: number;
  /** Callbacks that could not be delivered. */
  waiting: number;
  parked: number;
  /** Parked callbacks that came in the last days. */
  parked_lately: number;
  /** Ids of the first that wait or were parked lately. */
  named: string[];
}

/** Result of an audit. */
export interface AuditResult {
  orphans: OrphansFound;
  deliveries: DeliveriesFound;
  callbacks: CallbacksFound;
  /** Reason why a person is needed; null when none is. */
  attention: AuditAttention | null;
}

/** Values of `ServiceAttention` of an audit. */
export type AuditAttention = 'orphans_found' | 'callbacks_waiting';

export function auditAttention({
  orphans,
  callbacks,
}: Pick<AuditResult, 'orphans' | 'callbacks'>): AuditAttention | null {
  if (orphans.found > 0) return 'orphans_found';
  return callbacks.waiting + callbacks.parked_lately > 0 ? 'callbacks_waiting' : null;
}
