import type { Client } from '@temporalio/client';
import type { Db } from 'mongodb';
import { ServiceError } from '../../domain/errors';
import { PAYER_MONTHS, RETENTION } from '../../domain/operators/retention';
import { KINDS, RESOURCES } from '../../domain/resources';
import { createStores, ensureIndexes, missingIndexes } from '../../store';
import { missingAttributes, registerAttributes } from '../../temporal/attributes';
import { findConfigFault } from '../../temporal/deadline';
import { sandboxBankDatabase } from '../banks/sandbox';
import { SEPA_CONNECTOR, sepaDatabase } from '../banks/sepa/book';
import { REQUEST_DAYS } from '../events/requests';

/** Connectors have roles of their own; the user of `migrate` has all rights. */
type Service = 'api' | 'worker';

type Action = 'find' | 'listIndexes' | 'listCollections' | 'createIndex' | Write;
type Write = 'insert' | 'update' | 'remove';

const ADD: readonly Write[] = ['insert'];
const CHANGE: readonly Write[] = ['update'];
const KEEP: readonly Write[] = ['insert', 'update'];
const ALL: readonly Write[] = ['insert', 'update', 'remove'];

const COLLECTIONS = KINDS.map((kind) => RESOURCES[kind].collection);

/** An empty entry: only the command line writes. */
export const WRITES: Readonly<Record<string, Partial<Record<Service, readonly Write[]>>>> = {
  ...Object.fromEntries(COLLECTIONS.map((collection) => [collection, { worker: KEEP }])),
  accounts: { api: CHANGE, worker: CHANGE },
  api_keys: { api: KEEP },
  approval_limits: { worker: KEEP },
  approval_sums: { worker: KEEP },
  approvals: { worker: KEEP },
  audit_heads: { api: KEEP, worker: KEEP },
  audit_log: { api: ADD, worker: ADD },
  bank_accounts: {},
  bank_callbacks: { api: KEEP, worker: ALL },
  bank_movements: { worker: KEEP },
  brand_logos: { api: KEEP },
  connector_capabilities: {},
  connector_keys: {},
  connector_pauses: {},
  connector_releases: {},
  dashboard_challenges: { api: ['insert', 'remove'] },
  dashboard_invitations: { api: ['insert', 'remove'], worker: CHANGE },
  dashboard_sessions: { api: ALL },
  dashboard_throttles: { api: ALL },
  deliveries: { api: KEEP, worker: ALL },
  // The merchant's evidence is stored before it is sent.
  disputes: { api: CHANGE, worker: KEEP },
  entry_states: { worker: ALL },
  event_orders: { api: KEEP },
  events: { api: KEEP, worker: ALL },
  idempotency_records: { api: ALL, worker: ['update', 'remove'] },
  journal_entries: { worker: ADD },
  ledger_books: { worker: KEEP },
  ledger_checkpoints: { worker: ADD },
  ledger_checks: { worker: KEEP },
  ledger_verified: { worker: KEEP },
  mail_settings: { worker: KEEP },
  mails: { api: ADD, worker: ALL },
  operators: {},
  // The customer's page notes that it was opened.
  payments: { api: CHANGE, worker: KEEP },
  payout_days: { worker: KEEP },
  recipients: { api: KEEP, worker: CHANGE },
  requests: { api: ADD },
  routing_rules: {},
  sandbox_reports: { api: ADD },
  statement_lines: {},
  statement_refusals: {},
  statements: {},
  schedule_runs: { worker: KEEP },
  service_epoch: { worker: KEEP },
  users: { api: ALL },
  wallets: { api: KEEP },
  webhook_endpoints: { api: ALL, worker: CHANGE },
  worker_heartbeats: { worker: ALL },
};

/** Tie an instruction, a callback or a statement to its owner, and say which format and time they have. */
const READ_BY_CONNECTORS = [
  'accounts',
  'bank_accounts',
  'bank_movements',
  'connector_releases',
  'recipients',
  'service_epoch',
  ...COLLECTIONS,
];

/** Takes what simulations report. */
const SANDBOX_BANK = 'sandbox_bank';

/** Not even the command line changes what is written once. */
const WRITTEN_ONCE = ['audit_log', 'journal_entries', 'ledger_checkpoints'];

const EVERY = '';

interface Privilege {
  resource: { db: string; collection: string } | { cluster: true };
  actions: readonly (Action | 'getParameter')[];
}

/** Argument of `createRole`. */
export interface MongoRole {
  role: string;
  privileges: readonly Privilege[];
}

/**
 * Builds the fewest rights that API, worker and command line need.
 * @param connectors whose statements the command line imports
 */
export function serviceRoles(
  database: string,
  connectors: readonly string[] = [],
): Record<Service | 'command_line', MongoRole> {
  const buildRole = (service: Service, ...more: Privilege[]): MongoRole => ({
    role: `${database}_${service}`,
    privileges: [
      buildPrivilege(database, EVERY, 'find', 'listIndexes', 'listCollections'),
      ...Object.entries(WRITES).flatMap(([collection, { [service]: writes = [] }]) =>
        writes.length === 0 ? [] : [buildPrivilege(database, collection, ...writes)],
      ),
      ...more,
    ],
  });
  return {
    // It creates the unique index before it stores an endpoint.
    api: buildRole('api', buildPrivilege(database, 'webhook_endpoints', 'createIndex')),
    worker: buildRole(
      'worker',
      { resource: { cluster: true }, actions: ['getParameter'] },
      // The scheduled check of the ledger creates its index.
      buildPrivilege(database, 'ledger_checkpoints', 'createIndex'),
    ),
    command_line: {
      role: `${database}_command_line`,
      privileges: [
        buildPrivilege(database, EVERY, 'find', 'listIndexes', 'listCollections', 'createIndex'),
        ...Object.keys(WRITES).map((collection) =>
          buildPrivilege(database, collection, ...(WRITTEN_ONCE.includes(collection) ? ADD : ALL)),
        ),
        ...[sandboxBankDatabase(database), sepaDatabase(database, SEPA_CONNECTOR)].map((own) =>
          buildPrivilege(own, EVERY, 'find', 'listIndexes', 'createIndex', ...ALL),
        ),
        ...connectors.map((name) => buildPrivilege(`${database}_${name}`, EVERY, 'find')),
      ],
    },
  };
}

/** Grants reads of the service, its callbacks, its report of itself, and its own database. */
export function connectorRole(database: string, connector: string): MongoRole {
  const own = `${database}_${connector}`;
  return {
    role: `${database}_connector_${connector}`,
    privileges: [
      ...READ_BY_CONNECTORS.map((collection) => buildPrivilege(database, collection, 'find')),
      buildPrivilege(database, 'bank_callbacks', 'find', ...KEEP),
      buildPrivilege(database, 'connector_capabilities', 'find', ...KEEP),
      ...(connector === SANDBOX_BANK
        ? [buildPrivilege(database, 'sandbox_reports', 'find', 'remove')]
        : []),
      buildPrivilege(own, EVERY, 'find', 'listIndexes', 'createIndex', ...ALL),
    ],
  };
}

function buildPrivilege(db: string, collection: string, ...actions: Action[]): Privilege {
  return { resource: { db, collection }, actions };
}

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

export interface MigrateDeps {
  /** Needs a connection without a socket timeout. */
  db: Db;
  temporal: Client;
  progress: (line: string) => void;
}

/**
 * Creates missing indexes, validators (among the indexes) and search attributes. Safe to interrupt and repeat.
 * @param dryRun only lists them
 * @throws ServiceError `search_attributes_refused` with the commands that register them
 */
export async function migrate({ db, temporal, progress }: MigrateDeps, dryRun: boolean) {
  const stores = createStores(db);
  const { unique, others, validators } = await missingIndexes(stores);
  const indexes = [...unique, ...validators.map((name) => `${name}.validator`), ...others];
  const where = { connection: temporal.connection, namespace: temporal.options.namespace };
  if (dryRun) return { indexes, search_attributes: await missingAttributes(where) };
  if (indexes.length > 0) progress(`creating the indexes ${indexes.join(', ')}`);
  await ensureIndexes(stores);
  try {
    return { indexes, search_attributes: await registerAttributes(where) };
  } catch (error) {
    const fault = findConfigFault(error);
    throw fault === undefined
      ? error
      : new ServiceError('search_attributes_refused', fault.message);
  }
}
