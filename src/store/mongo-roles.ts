/** Processes of the service that reach MongoDB, beside connectors; operators may do everything. */
type Service = 'api' | 'worker';

type Action = 'find' | 'listIndexes' | 'changeStream' | 'createIndex' | Write;
type Write = 'insert' | 'update' | 'remove';

const ADD: readonly Write[] = ['insert'];
const CHANGE: readonly Write[] = ['update'];
const KEEP: readonly Write[] = ['insert', 'update'];
const ALL: readonly Write[] = ['insert', 'update', 'remove'];

/** Writes that each process makes; what has none is written by operators alone. */
export const WRITES: Readonly<Record<string, Partial<Record<Service, readonly Write[]>>>> = {
  accounts: { api: CHANGE, worker: CHANGE },
  api_keys: { api: KEEP },
  audit_heads: { api: KEEP, worker: KEEP },
  audit_log: { api: ADD, worker: ADD },
  bank_callbacks: { api: KEEP, worker: KEEP },
  connector_keys: {},
  crypto_payments: { worker: KEEP },
  crypto_settlements: { worker: KEEP },
  dashboard_invitations: { api: ['insert', 'remove'] },
  dashboard_sessions: { api: ALL },
  dashboard_throttles: { api: ALL },
  deliveries: {},
  events: { api: KEEP, worker: KEEP },
  idempotency: { api: ALL, worker: ['update', 'remove'] },
  ledger_books: { worker: KEEP },
  ledger_checkpoints: {},
  ledger_checks: {},
  ledger_postings: { worker: KEEP },
  ledger_verified: {},
  payments: { api: CHANGE, worker: KEEP },
  payout_days: { worker: KEEP },
  payouts: { worker: KEEP },
  recipients: { api: KEEP, worker: CHANGE },
  refunds: { worker: KEEP },
  users: { api: ALL },
  wallets: { api: KEEP },
  webhook_endpoints: { api: KEEP },
  worker_heartbeats: { worker: ALL },
};

/** Collections by which a connector knows whose money an instruction or a callback is about. */
const READ_BY_CONNECTORS = [
  'accounts',
  'crypto_payments',
  'crypto_settlements',
  'payments',
  'payouts',
  'recipients',
  'refunds',
];

/** Name that stands for all collections of a database. */
const EVERY = '';

interface Privilege {
  resource: { db: string; collection: string } | { cluster: true };
  actions: readonly (Action | 'getParameter')[];
}

/** Role of MongoDB, as `createRole` takes it. */
export interface MongoRole {
  role: string;
  privileges: readonly Privilege[];
}

/** Roles of the API and the worker: all that they need in the service's database, no more. */
export function serviceRoles(database: string): Record<Service, MongoRole> {
  const of = (service: Service, ...more: Privilege[]): MongoRole => ({
    role: `${database}_${service}`,
    privileges: [
      // The stream that tells of changed settings is one of the whole database.
      on(database, EVERY, 'find', 'listIndexes', 'changeStream'),
      ...Object.entries(WRITES).flatMap(([collection, { [service]: writes = [] }]) =>
        writes.length === 0 ? [] : [on(database, collection, ...writes)],
      ),
      ...more,
    ],
  });
  return {
    // It holds the endpoint unique before it keeps one.
    api: of('api', on(database, 'webhook_endpoints', 'createIndex')),
    worker: of('worker', { resource: { cluster: true }, actions: ['getParameter'] }),
  };
}

/** Role of a connector: what it reads of the service, its callbacks, and its own database. */
export function connectorRole(database: string, connector: string): MongoRole {
  const own = `${database}_${connector}`;
  return {
    role: `${database}_connector_${connector}`,
    privileges: [
      ...READ_BY_CONNECTORS.map((collection) => on(database, collection, 'find')),
      on(database, 'bank_callbacks', 'find', ...KEEP),
      on(own, EVERY, 'find', 'listIndexes', 'createIndex', ...ALL),
    ],
  };
}

function on(db: string, collection: string, ...actions: Action[]): Privilege {
  return { resource: { db, collection }, actions };
}
