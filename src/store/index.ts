import type { Db } from 'mongodb';
import { MissingIndexes } from '../base/mongo-indexes';
import { createLedgerStore } from '../ledger/book';
import { createAccountStore, createLogoStore } from './accounts';
import { createApprovalStore } from './approvals';
import { createAuditLogStore, type Sign } from './audit';
import { createBalanceTransactionStore } from './balance-transactions';
import { createBankAccountStore } from './bank-accounts';
import { createCache } from './cache';
import { createCallbackStore } from './callbacks';
import {
  createCapabilitiesStore,
  createConnectorPauseStore,
  createConnectorReleaseStore,
  createRoutingRuleStore,
} from './connectors';
import { createCryptoPaymentStore } from './crypto-payments';
import { createCryptoSettlementStore } from './crypto-settlements';
import { createDeliveryStore } from './deliveries';
import { createDisputeStore } from './disputes';
import { createEndpointStore } from './endpoints';
import { createEpochStore } from './epoch';
import { createEventOrderStore, createEventStore } from './events';
import { createHeartbeatStore } from './heartbeats';
import { createIdempotencyStore } from './idempotency';
import { createInvitationStore } from './invitations';
import { createConnectorKeyStore, createKeyStore, createOperatorStore } from './keys';
import { createMailStore } from './mails';
import { createMovementStore } from './movements';
import { createPaymentStore, OVERVIEW_MS, type OverviewCounts } from './payments';
import { createPayoutDayStore, createPayoutStore } from './payouts';
import { createRecipientStore } from './recipients';
import { createRefundStore } from './refunds';
import { createRequestStore } from './requests';
import { createSandboxReportStore } from './sandbox-reports';
import { createScheduleRunStore } from './schedule-runs';
import { createChallengeStore, createSessionStore } from './sessions';
import { createStatementStore } from './statements';
import { createThrottleStore } from './throttles';
import { createUserStore } from './users';
import { createWalletStore } from './wallets';

export type Stores = ReturnType<typeof createStores>;

/**
 * @param cacheMs age up to which accounts, endpoints, routing rules and pauses are cached; 0: never
 * @param sign signs the process's lines of the audit log
 */
export function createStores(db: Db, cacheMs = 0, sign?: Sign) {
  return {
    accounts: createAccountStore(db, cacheMs),
    approvals: createApprovalStore(db),
    auditLog: createAuditLogStore(db, sign),
    balanceTransactions: createBalanceTransactionStore(db),
    bankAccounts: createBankAccountStore(db),
    callbacks: createCallbackStore(db),
    capabilities: createCapabilitiesStore(db),
    challenges: createChallengeStore(db),
    connectorKeys: createConnectorKeyStore(db),
    connectorPauses: createConnectorPauseStore(db, cacheMs),
    connectorReleases: createConnectorReleaseStore(db),
    crypto_payments: createCryptoPaymentStore(db),
    crypto_settlements: createCryptoSettlementStore(db),
    deliveries: createDeliveryStore(db),
    disputes: createDisputeStore(db),
    endpoints: createEndpointStore(db, cacheMs),
    epoch: createEpochStore(db),
    eventOrder: createEventOrderStore(db),
    events: createEventStore(db),
    heartbeats: createHeartbeatStore(db),
    idempotency: createIdempotencyStore(db),
    invitations: createInvitationStore(db),
    keys: createKeyStore(db),
    ledger: createLedgerStore(db),
    logos: createLogoStore(db),
    mails: createMailStore(db),
    movements: createMovementStore(db),
    operators: createOperatorStore(db),
    overviewCounts: createCache<OverviewCounts>(cacheMs === 0 ? 0 : OVERVIEW_MS),
    payments: createPaymentStore(db),
    payoutDays: createPayoutDayStore(db),
    payouts: createPayoutStore(db),
    recipients: createRecipientStore(db),
    refunds: createRefundStore(db),
    requests: createRequestStore(db),
    routingRules: createRoutingRuleStore(db, cacheMs),
    sandboxReports: createSandboxReportStore(db),
    scheduleRuns: createScheduleRunStore(db),
    sessions: createSessionStore(db),
    statements: createStatementStore(db),
    throttles: createThrottleStore(db),
    users: createUserStore(db),
    wallets: createWalletStore(db),
  };
}

/**
 * Checks format, indexes and validators when a process starts; `migrate` creates them.
 * @throws ServiceError `other_format`; Error when a unique index or a validator is missing
 */
export async function checkDatabase(
  stores: Stores,
  log: { warn(fields: { count: number }, line: string): void },
): Promise<void> {
  await stores.epoch.checkFormat();
  const { unique, others, validators } = await missingIndexes(stores);
  const faults = [
    ...describe('indexes without which data could be stored twice', unique),
    ...describe('validators without which a book could be wrong', validators),
  ];
  if (faults.length > 0) {
    const list = faults.join(', and ');
    throw new Error(`MongoDB lacks ${list}. Make them first: npm run -s cli -- migrate`);
  }
  if (others.length === 0) return;
  const names = others.join(', ');
  log.warn({ count: others.length }, `lists are slow until migrate has made ${names}`);
}

function describe(what: string, names: readonly string[]): string[] {
  return names.length === 0 ? [] : [`${what}: ${names.join(', ')}`];
}

export async function missingIndexes(stores: Stores): Promise<MissingIndexes> {
  const missing = new MissingIndexes();
  await ensureIndexes(stores, missing);
  for (const names of [missing.unique, missing.others, missing.validators]) names.sort();
  return missing;
}

/**
 * @param missing collects the missing ones; then nothing is created
 * @throws ServiceError `other_format`
 */
export async function ensureIndexes(stores: Stores, missing?: MissingIndexes): Promise<void> {
  if (missing === undefined) await stores.epoch.noteFormat();
  const { ledger, ...others } = stores;
  // A collection is made with its validator, which only an administrator may add later.
  await ledger.ensureIndexes(missing);
  await Promise.all(
    Object.values(others).map((store) =>
      'ensureIndexes' in store ? store.ensureIndexes(missing) : undefined,
    ),
  );
}
