import { PAYER_MONTHS, RETENTION } from '../domain/account/retention';
import { KINDS, RESOURCES } from '../domain/resources';
import { REQUEST_DAYS } from './requests/list';

export interface Growth {
  what: string;
  collections: readonly string[];
  /** Text of the docs. */
  until: string;
}

const months = (name: keyof typeof RETENTION) => `${RETENTION[name]} months (\`${name}\`)`;

/** A test refuses a new collection until it is here. @see docs/operations.md#what-grows */
export const GROWTH: readonly Growth[] = [
  {
    what: 'Payments, refunds, payouts, crypto payments and settlements',
    collections: KINDS.map((kind) => RESOURCES[kind].collection),
    until: `always: the books refer to them; names of payers ${PAYER_MONTHS} months`,
  },
  {
    what: 'Journal entries, balances, checkpoints of their verification',
    collections: ['ledger_postings', 'ledger_books', 'ledger_checkpoints'],
    until: 'always: they are the books',
  },
  {
    what: 'Events with their deliveries and attempts',
    collections: ['events', 'event_deliveries'],
    until: `${months('events')}; a delivery that is pending stays`,
  },
  {
    what: 'Callbacks of banks',
    collections: ['bank_callbacks'],
    until:
      'always: they prove what was booked, and a repeat is recognized; dismissed ones ' +
      months('dismissed_callbacks'),
  },
  {
    what: 'Recipients',
    collections: ['recipients'],
    until: `always, for past payouts; details ${months('recipients')} after the last payout`,
  },
  {
    what: 'Lines of bank statements; no file is stored',
    collections: ['statements', 'statement_lines', 'statement_refusals'],
    until: 'always: they are reconciled with the books',
  },
  {
    what: 'Audit log, approvals',
    collections: ['audit_log', 'audit_heads', 'approvals'],
    until: 'always',
  },
  {
    what: 'Idempotency keys with their answers',
    collections: ['idempotency'],
    until: '24 hours; 30 days while unfinished',
  },
  {
    what: 'Calls of merchants',
    collections: ['requests'],
    until: `${REQUEST_DAYS} days`,
  },
  {
    what: 'Sessions, challenges, invitations and limits of the dashboard',
    collections: [
      'dashboard_sessions',
      'dashboard_challenges',
      'dashboard_invitations',
      'dashboard_throttles',
    ],
    until: 'they expire',
  },
  { what: 'Mails', collections: ['mails'], until: 'they are sent; 7 days after the last attempt' },
  {
    what: "Reports that a sandbox's simulations cause",
    collections: ['sandbox_reports'],
    until: 'the sandbox bank has made them',
  },
  { what: 'Sums of payouts by day', collections: ['payout_days'], until: '400 days' },
  { what: 'Replaced logos', collections: ['brand_logos'], until: 'a day' },
  { what: 'Signs of life of workers', collections: ['worker_heartbeats'], until: 'a minute' },
  {
    what: 'Settings, and one row for each account, operator, worker or check',
    collections: [
      ...['accounts', 'api_keys', 'users', 'webhook_endpoints', 'wallets', 'event_orders'],
      ...['operators', 'approval_limits', 'bank_accounts', 'routing_rules', 'mail_settings'],
      ...['connector_keys', 'connector_capabilities', 'ledger_checks', 'ledger_verified'],
      ...['schedule_runs', 'service_epoch'],
    ],
    until: 'always: they are few',
  },
];
