import { PAYER_MONTHS, RETENTION } from '../../domain/account/retention';
import { KINDS, RESOURCES } from '../../domain/resources';
import { REQUEST_DAYS } from '../events/requests/list';

export interface Growth {
  collections: readonly string[];
  /** Text of the docs. */
  until: string;
}

const months = (name: keyof typeof RETENTION) => `${RETENTION[name]} months (\`${name}\`)`;

/** A test refuses a new collection until it is here. @see docs/operations.md#what-grows */
export const GROWTH: readonly Growth[] = [
  {
    collections: KINDS.map((kind) => RESOURCES[kind].collection),
    until: `always; names of payers ${PAYER_MONTHS} months`,
  },
  { collections: ['events', 'deliveries'], until: `${months('events')}, unless pending` },
  {
    collections: ['bank_callbacks'],
    until: `always; dismissed ones ${months('dismissed_callbacks')}`,
  },
  {
    collections: ['recipients'],
    until: `always; details ${months('recipients')} after the last payout`,
  },
  { collections: ['idempotency_records'], until: '24 hours; 30 days while unfinished' },
  { collections: ['requests'], until: `${REQUEST_DAYS} days` },
  {
    collections: [
      ...['dashboard_sessions', 'dashboard_challenges', 'dashboard_invitations'],
      'dashboard_throttles',
    ],
    until: 'they expire',
  },
  { collections: ['mails'], until: 'they are sent; 7 days after the last attempt' },
  { collections: ['sandbox_reports'], until: 'the sandbox bank has made them' },
  { collections: ['approval_sums'], until: 'a day' },
  { collections: ['payout_days'], until: '400 days' },
  { collections: ['brand_logos'], until: 'always; replaced ones a day' },
  { collections: ['worker_heartbeats'], until: 'a minute' },
  {
    collections: [
      ...['journal_entries', 'entry_states', 'ledger_books', 'ledger_checkpoints', 'ledger_checks'],
      ...['ledger_verified', 'statements', 'statement_lines', 'statement_refusals', 'audit_log'],
      ...['audit_heads', 'approvals', 'accounts', 'api_keys', 'users', 'webhook_endpoints'],
      ...['wallets', 'event_orders', 'operators', 'approval_limits', 'bank_accounts'],
      'bank_movements',
      ...[
        'routing_rules',
        'connector_pauses',
        'connector_releases',
        'mail_settings',
        'connector_keys',
        'connector_capabilities',
      ],
      ...['schedule_runs', 'service_epoch'],
    ],
    until: 'always',
  },
];
