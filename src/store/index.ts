import type { Db } from 'mongodb';
import { createLedgerStore } from '../ledger/book';
import type { Logger } from '../log';
import { connectToBuild, type TakeBuild } from '../mongo-indexes';
import { createAccountStore } from './accounts';
import { createAuditLogStore } from './audit-log';
import { createCallbackStore } from './callbacks';
import { createDeliveryStore } from './deliveries';
import { createEndpointStore } from './endpoints';
import { createEventStore } from './events';
import { createHeartbeatStore } from './heartbeats';
import { createIdempotencyStore } from './idempotency';
import { createInvitationStore } from './invitations';
import { createKeyStore } from './keys';
import { createPaymentStore } from './payments';
import { createPayoutStore } from './payouts';
import { createRecipientStore } from './recipients';
import { createRefundStore } from './refunds';
import { createSessionStore } from './sessions';
import type { Settings } from './settings';
import { createThrottleStore } from './throttles';
import { createUserStore } from './users';

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
    deliveries: createDeliveryStore(db),
    endpoints: createEndpointStore(db, settings?.of('webhook_endpoints')),
    events: createEventStore(db),
    heartbeats: createHeartbeatStore(db),
    idempotency: createIdempotencyStore(db),
    invitations: createInvitationStore(db),
    keys: createKeyStore(db),
    ledger: createLedgerStore(db),
    payments: createPaymentStore(db),
    payouts: createPayoutStore(db),
    recipients: createRecipientStore(db),
    refunds: createRefundStore(db),
    sessions: createSessionStore(db),
    throttles: createThrottleStore(db),
    users: createUserStore(db),
  };
}

/**
 * Makes the indexes that a service can't begin without. Others of a large collection are built while
 * it is at work, so that a new version is never kept down by them; a list that goes by one is slow
 * until then.
 */
export async function beginIndexes(
  { uri, database }: { uri: string; database: string },
  log: Logger,
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
 * Makes all indexes: without unique ones facts could be kept twice.
 * @param later takes the builds of large collections that are not waited for
 */
export async function ensureIndexes(stores: Stores, later?: TakeBuild): Promise<void> {
  await Promise.all(Object.values(stores).map((store) => store.ensureIndexes(later)));
}
