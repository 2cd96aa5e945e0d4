import type { Db } from 'mongodb';
import { createLedgerStore } from '../ledger/book';
import { createAccountStore } from './accounts';
import { createCallbackStore } from './callbacks';
import { createDeliveryStore } from './deliveries';
import { createEndpointStore } from './endpoints';
import { createEventStore } from './events';
import { createHeartbeatStore } from './heartbeats';
import { createIdempotencyStore } from './idempotency';
import { createKeyStore } from './keys';
import { createPaymentStore } from './payments';
import { createPayoutStore } from './payouts';
import { createRecipientStore } from './recipients';
import { createRefundStore } from './refunds';

export type Stores = ReturnType<typeof createStores>;

/** Stores of all collections; each file owns its queries and indexes. */
export function createStores(db: Db) {
  return {
    accounts: createAccountStore(db),
    callbacks: createCallbackStore(db),
    deliveries: createDeliveryStore(db),
    endpoints: createEndpointStore(db),
    events: createEventStore(db),
    heartbeats: createHeartbeatStore(db),
    idempotency: createIdempotencyStore(db),
    keys: createKeyStore(db),
    ledger: createLedgerStore(db),
    payments: createPaymentStore(db),
    payouts: createPayoutStore(db),
    recipients: createRecipientStore(db),
    refunds: createRefundStore(db),
  };
}

/** Makes all indexes, before a service begins: without unique ones facts could be kept twice. */
export async function ensureIndexes(stores: Stores): Promise<void> {
  await Promise.all(Object.values(stores).map((store) => store.ensureIndexes()));
}
