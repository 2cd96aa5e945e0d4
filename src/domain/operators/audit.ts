/** Looks every hour for lost workflows and callbacks. */
export const AUDIT_WORKFLOW = 'audit';

export const NAMED_MAX = 20;

export const PARKED_ATTENTION_DAYS = 7;

export interface OrphanFindings {
  checked: number;
  found: number;
  named: string[];
  /** Null before the first walk over everything in progress. */
  walked_at?: string | null;
}

export interface DeliveryFindings {
  checked: number;
  restarted: number;
  /** Could not be started or tried again, and are left to the next audit. */
  failed: number;
  named: string[];
}

export interface CallbackFindings {
  delivered: number;
  /** Callbacks that could not be delivered. */
  waiting: number;
  parked: number;
  parked_lately: number;
  named: string[];
}

export interface AuditResult {
  orphans: OrphanFindings;
  deliveries: DeliveryFindings;
  callbacks: CallbackFindings;
  attention: AuditAttention | null;
}

export type AuditAttention = 'orphans_found' | 'callbacks_waiting';

export function auditAttention({
  orphans,
  callbacks,
}: Pick<AuditResult, 'orphans' | 'callbacks'>): AuditAttention | null {
  if (orphans.found > 0) return 'orphans_found';
  return callbacks.waiting + callbacks.parked_lately > 0 ? 'callbacks_waiting' : null;
}
