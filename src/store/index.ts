import type { Db } from 'mongodb';
import { createLedgerStore } from '../ledger/book';
import { connectToBuild, type IndexWork, MissingIndexes } from '../mongo-indexes';
import { createAccountStore } from './accounts';
import { createAuditLogStore } from './audit-log';
import { createCallbackStore } from './callbacks';
import { createConnectorKeyStore } from './connector-keys';
import { createCryptoPaymentStore } from './crypto-payments';
import { createCryptoSettlementStore } from './crypto-settlements';
import { createDeliveryStore } from './deliveries';
import { createEndpointStore } from './endpoints';
import { createEventStore } from './events';
import { createHeartbeatStore } from './heartbeats';
import { createIdempotencyStore } from './idempotency';
import { createInvitationStore } from './invitations';
import { createKeyStore } from './keys';
import { createPaymentStore } from './payments';
import { createPayoutDayStore } from './payout-days';
import { createPayoutStore } from './payouts';
import { createRecipientStore } from './recipients';
import { createRefundStore } from './refunds';
import { createSessionStore } from './sessions';
import type { Settings } from './settings';
import { createThrottleStore } from './throttles';
import { createUserStore } from './users';
import { createWalletStore } from './wallets';

export type Stores = ReturnType<typeof createStores>;

/**
 * Stores of all collections; each file owns its queries and indexes.
 * @param settings what this process remembers; each setting is read when not given
 */
export function createStores(db: Db, settings?: Settings) {
  return {
    accounts: createAccountStore(db, settings?.of('accounts')),
    auditLog: createAuditLogStore(db),
    callbacks: createCallbackStore(db),
    connectorKeys: createConnectorKeyStore(db),
    crypto_payments: createCryptoPaymentStore(db),
    crypto_settlements: createCryptoSettlementStore(db),
    deliveries: createDeliveryStore(db),
    endpoints: createEndpointStore(db, settings?.of('webhook_endpoints')),
    events: createEventStore(db),
    heartbeats: createHeartbeatStore(db),
    idempotency: createIdempotencyStore(db),
    invitations: createInvitationStore(db),
    keys: createKeyStore(db),
    ledger: createLedgerStore(db),
    payments: createPaymentStore(db),
    payoutDays: createPayoutDayStore(db),
    payouts: createPayoutStore(db),
    recipients: createRecipientStore(db),
    refunds: createRefundStore(db),
    sessions: createSessionStore(db),
    throttles: createThrottleStore(db),
    users: createUserStore(db),
    wallets: createWalletStore(db),
  };
}

/** Listener to the making of indexes, such as a process's log. */
export interface IndexLog {
  info(line: string): void;
  warn(fields: { err?: unknown; count?: number }, line: string): void;
}

/**
 * Makes the indexes that a service can't begin without. Others of a large collection are built while
 * it is at work, so that a new version is never kept down by them; a list that goes by one is slow
 * until then.
 */
export async function beginIndexes(
  { uri, database }: { uri: string; database: string },
  log: IndexLog,
): Promise<void> {
  const mongo = await connectToBuild(uri);
  const builds: Promise<void>[] = [];
  try {
    await ensureIndexes(createStores(mongo.db(database)), ({ collection, names, done }) => {
      const which = `${names.join(', ')} of ${collection}`;
      const tell = (line: string) => names.length > 0 && log.info(line);
      tell(`building the indexes ${which}`);
      const told = done.then(
        () => void tell(`built the indexes ${which}`),
        (err) => log.warn({ err }, `indexes of ${collection} were not built`),
      );
      builds.push(told);
    });
  } finally {
    void Promise.all(builds).then(() => mongo.close());
  }
}

/**
 * Checks at the start of a process that the indexes are there; `migrate` makes them.
 * @throws Error when one is missing that must be unique: facts could be kept twice
 */
export async function checkIndexes(stores: Stores, log: IndexLog): Promise<void> {
  const { unique, others } = await missingIndexes(stores);
  if (unique.length > 0) {
    throw new Error(
      `MongoDB lacks indexes without which facts could be kept twice: ${unique.join(', ')}. ` +
        'Make them first: npm run -s cli -- migrate',
    );
  }
  if (others.length === 0) return;
  const names = others.join(', ');
  log.warn({ count: others.length }, `lists are slow until migrate has made ${names}`);
}

/** Finds the indexes that are wanted and not there, by name, and makes none. */
export async function missingIndexes(stores: Stores): Promise<MissingIndexes> {
  const missing = new MissingIndexes();
  await ensureIndexes(stores, missing);
  for (const names of [missing.unique, missing.others]) names.sort();
  return missing;
}

/**
 * Makes all indexes: without unique ones facts could be kept twice.
 * @param work takes the builds of large collections that are not waited for, or what is missing
 */
export async function ensureIndexes(stores: Stores, work?: IndexWork): Promise<void> {
  await Promise.all(Object.values(stores).map((store) => store.ensureIndexes(work)));
}
