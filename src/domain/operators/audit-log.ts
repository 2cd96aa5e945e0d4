import { CALLBACK_RESOURCES, type CallbackResource } from '../banks/callback';

const OPERATOR_ACTS = Object.fromEntries(
  CALLBACK_RESOURCES.map((kind) => [
    `${kind}.act`,
    `Operator's act on a ${kind.replace('_', ' ')}`,
  ]),
) as Record<`${CallbackResource}.act`, string>;

/** @see docs/dashboard.md#audit-log */
export const AUDIT_LABELS = {
  'account.created': 'Account created',
  'account.updated': 'Account changed',
  'account.frozen': 'Account frozen',
  'account.unfrozen': 'Account unfrozen',
  'api_key.created': 'API key created',
  'api_key.revoked': 'API key revoked',
  'operator.created': 'Operator created',
  'operator.revoked': 'Operator’s key revoked',
  'approval.requested': 'Approval requested',
  'approval.confirmed': 'Request confirmed',
  'approval.approved': 'Request approved',
  'approval.rejected': 'Request rejected',
  'connector_key.created': 'Connector key created',
  'connector_key.revoked': 'Connector key revoked',
  'brand.changed': 'Brand changed',
  'webhook.set': 'Webhook endpoint set',
  'webhook.created': 'Webhook endpoint added',
  'webhook.updated': 'Webhook endpoint changed',
  'webhook.disabled': 'Webhook endpoint disabled after failures',
  'webhook.deleted': 'Webhook endpoint deleted',
  'webhook.rolled': 'Signing secret rolled',
  'webhook.secret_shown': 'Signing secret shown',
  'event.sent': 'Event sent manually',
  ...OPERATOR_ACTS,
  'callback.delivered': 'Callback delivered manually',
  'callback.dismissed': 'Callback dismissed',
  'orphan.restarted': 'Workflow restarted',
  'stores.reconciled': 'Restore declared complete',
  'keys.rotated': 'Encryption key created',
  'keys.retired': 'Encryption key removed',
  'payment.cancelled': 'Payment cancellation requested',
  'dispute.answered': 'Evidence for a dispute sent',
  'dispute.accepted': 'Dispute accepted',
  'refund.created': 'Refund requested',
  'payer.erased': 'Payer erased',
  'recipient.deleted': 'Recipient deleted',
  'settlement.created': 'Settlement requested',
  'wallet.set': 'Wallet set',
  'balance.funded': 'Balance funded',
  'balance.adjusted': 'Balance corrected',
  'balance.reversed': 'Journal entry reversed',
  'balance.resolved': 'Money in suspense resolved',
  'platform.posted': 'Own money of the service posted',
  'bank_account.added': 'Bank account added',
  'bank_account.updated': 'Bank account changed',
  'connector.paused': 'Connector paused',
  'connector.resumed': 'Connector resumed',
  'connector.released': 'Connector released after a restore',
  'routing.set': 'Routing rule set',
  'routing.removed': 'Routing rule removed',
  'sepa_file.released': 'SEPA file released at the bank',
  'sepa_file.resent': 'Refused SEPA file sent again',
  'sepa_file.dismissed': 'Refused file of a bank dismissed',
  'statement.imported': 'Bank statement imported',
  'statement.abandoned': 'Interrupted import given up',
  'statement.matched': 'Statement line matched',
  'statement.unmatched': 'Statement line unmatched',
  'statement.assigned': 'Statement line assigned',
  'statement.cleared': 'Journal entries cleared without a statement line',
  'statement.refusal_acknowledged': 'Refused statement acknowledged',
  'statement.not_repeated_acknowledged': 'Movement on no statement acknowledged',
  'user.invited': 'Team member invited',
  'user.invitation_withdrawn': 'Invitation withdrawn',
  'user.joined': 'Team member joined',
  'user.role_changed': 'Role changed',
  'user.removed': 'Team member removed',
  'user.signed_in': 'Signed in',
  'user.session_ended': 'Session ended',
  'user.other_sessions_ended': 'Other sessions ended',
  'user.signed_out_everywhere': 'Signed out everywhere',
  'user.password_changed': 'Password changed',
  'user.password_reset': 'Password reset',
  'user.unlocked': 'Sign-in unlocked',
  'user.second_factor_on': 'Second factor turned on',
  'user.second_factor_off': 'Second factor turned off',
  'user.recovery_code_used': 'Recovery code used',
  'passkey.added': 'Passkey added',
  'passkey.removed': 'Passkey removed',
} as const satisfies Record<string, string>;

export type AuditedAct = keyof typeof AUDIT_LABELS;

/** Processes, each of which signs the lines that it writes. */
export const AUDIT_WRITERS = ['api', 'worker', 'command_line'] as const;
export type AuditWriter = (typeof AUDIT_WRITERS)[number];

const LINES_OF_WORKERS = Object.fromEntries(
  CALLBACK_RESOURCES.map((kind) => [`${kind}.act`, 'worker']),
) as Record<`${CallbackResource}.act`, 'worker'>;

/** Acts whose lines the API writes. */
const ACTS_OF_API = [
  'api_key.created',
  'api_key.revoked',
  'brand.changed',
  'dispute.accepted',
  'dispute.answered',
  'event.sent',
  'passkey.added',
  'passkey.removed',
  'payment.cancelled',
  'recipient.deleted',
  'refund.created',
  'settlement.created',
  'user.invitation_withdrawn',
  'user.invited',
  'user.joined',
  'user.other_sessions_ended',
  'user.password_changed',
  'user.recovery_code_used',
  'user.removed',
  'user.role_changed',
  'user.second_factor_off',
  'user.second_factor_on',
  'user.session_ended',
  'user.signed_in',
  'user.signed_out_everywhere',
  'wallet.set',
  'webhook.created',
  'webhook.deleted',
  'webhook.rolled',
  'webhook.secret_shown',
  'webhook.set',
  'webhook.updated',
] as const satisfies readonly AuditedAct[];
export type ActOfApi = (typeof ACTS_OF_API)[number];

/**
 * Names who writes an act besides the command line; `operator`: only operators, under their keys.
 * `audit verify` believes a line from no other process.
 */
export const ACT_WRITERS: Partial<Record<AuditedAct, 'api' | 'worker' | 'operator'>> = {
  ...LINES_OF_WORKERS,
  ...(Object.fromEntries(ACTS_OF_API.map((act) => [act, 'api'])) as Record<ActOfApi, 'api'>),
  'account.unfrozen': 'operator',
  'approval.requested': 'worker',
  'webhook.disabled': 'worker',
};

export function isAccountAct(act: AuditedAct): boolean {
  return !/^(?:approval|bank_account|connector_key|keys|operator|platform|routing|sepa_file|statement|stores)[.]/.test(
    act,
  );
}

export type AuditFacts = Readonly<
  Record<string, string | number | boolean | null | readonly string[] | undefined>
>;

const SECRET = /sk_(?:sandbox|live)_|whsec_|cnsec_|opkey_|\$argon2|^[A-Za-z0-9_-]{43}$/;

/** Leaves out what looks like a secret: merchants and operators write some of the texts. */
export function leaveOutSecrets(facts: AuditFacts): AuditFacts {
  const leaveOut = (text: string) => (SECRET.test(text) ? 'omitted: it looks like a secret' : text);
  const entries = Object.entries(facts).map(([name, value]) => {
    if (typeof value === 'string') return [name, leaveOut(value)];
    return [name, Array.isArray(value) ? value.map(leaveOut) : value];
  });
  return Object.fromEntries(entries);
}

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

type AuditAttention = 'orphans_found' | 'callbacks_waiting';

export function auditAttention({
  orphans,
  callbacks,
}: Pick<AuditResult, 'orphans' | 'callbacks'>): AuditAttention | null {
  if (orphans.found > 0) return 'orphans_found';
  return callbacks.waiting + callbacks.parked_lately > 0 ? 'callbacks_waiting' : null;
}
