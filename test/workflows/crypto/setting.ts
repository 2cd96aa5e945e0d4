import { randomBytes, randomUUID } from 'node:crypto';
import { WithStartWorkflowOperation } from '@temporalio/client';
import { createCryptoPaymentActivities } from '../../../activities/crypto-payments';
import { createCryptoSettlementActivities } from '../../../activities/crypto-settlements';
import { createLogger } from '../../../src/base/log';
import { signCallback } from '../../../src/callbacks/mac';
import type { CallbackName } from '../../../src/domain/callback/callback';
import { bookCurrency } from '../../../src/domain/crypto/assets';
import type {
  CryptoPaymentInput,
  CryptoSettlementInput,
} from '../../../src/domain/crypto/workflow';
import type { NewEntry } from '../../../src/ledger/entries';
import { ENTRY_LINES } from '../../../src/ledger/entry-lines';
import { LIFECYCLES } from '../../../src/lifecycles';
import { setWallet } from '../../../src/service/wallets';
import type { Stores } from '../../../src/store';
import { firstRun } from '../../../src/temporal/start';
import { operatorsAudit } from '../../support/audit';
import { eventually } from '../../support/http';
import { recordKey } from '../../support/records';
import { askTwice } from '../../support/skipping-server';
import { callback, type WorkflowSetting } from '../../support/workflow-setting';
import { postOnce } from '../../support/write-once';

export const ETHER = 10n ** 18n;
export const WALLET = '0x52908400098527886E0F7030069857D2E4169EE7';
export const COIN = { asset: 'ETH', network: 'ethereum', method: 'eth_ethereum' } as const;

/** A payment of one ether, opened as the API does it. */
export async function openPayment(
  setting: WorkflowSetting,
  connector: string,
  id: string = randomUUID(),
  livemode = false,
) {
  const account_id = `acct_${id}`;
  const routing = {
    ...{ account_id, livemode, amount: 10_000, currency: 'EUR', ...COIN, connector },
    expires_in_seconds: 1_800,
  };
  const input: CryptoPaymentInput = { ...routing, crypto_payment_id: id, request_id: 'req-1' };
  const crypto_payment = { reference: null, metadata: '{}' };
  await recordKey(setting.stores, 'createCryptoPayment', id, input, { crypto_payment, routing });
  return { id, account_id, ...(await open(setting, 'crypto_payment', id, input)) };
}

/** A settlement of a balance of one ether, to a wallet that counts. */
export async function openSettlement(
  setting: WorkflowSetting,
  connector: string,
  changes: Partial<CryptoSettlementInput> = {},
) {
  const owner = await openBalance(setting, false);
  await registerWallet(setting, owner, WALLET, new Date(0));
  return await settle(setting, connector, { ...owner, ...changes });
}

/** A settlement of the whole balance, unless the changes say otherwise. */
export async function settle(
  setting: WorkflowSetting,
  connector: string,
  changes: Owner & Partial<CryptoSettlementInput>,
) {
  const { crypto_settlement_id: id = randomUUID(), ...asked } = changes;
  const currency = bookCurrency(COIN);
  const settlement = { amount: null, currency, ...COIN, connector, ...asked };
  const input = { ...settlement, crypto_settlement_id: id, request_id: 'req-2' };
  await recordKey(setting.stores, 'createCryptoSettlement', id, input, { settlement });
  const { account_id } = changes;
  return { id, account_id, ...(await open(setting, 'crypto_settlement', id, input)) };
}

/** Account, in one of its environments. */
interface Owner {
  account_id: string;
  livemode: boolean;
}

/** A new account with a balance of one ether. */
export async function openBalance(setting: WorkflowSetting, livemode: boolean): Promise<Owner> {
  const owner = { account_id: `acct_${randomUUID()}`, livemode };
  await credit(setting, owner, ETHER);
  return owner;
}

/** Brings coins onto a balance, as a deposit does. */
export async function credit(
  setting: WorkflowSetting,
  owner: Owner,
  amount: bigint,
): Promise<void> {
  const posting = {
    ...({ kind: 'crypto_payment_credited', resource_id: randomUUID(), step: 'tx' } as const),
    ...{ ...owner, currency: bookCurrency(COIN) },
    ...{ at: new Date().toISOString(), legs: ENTRY_LINES.crypto_payment_credited('chain', amount) },
  } as const;
  await postOnce(setting, posting);
}

/** Registers a wallet; `at` is a time of the test's server, which may be days ahead. */
export async function registerWallet(
  { mongo, stores }: WorkflowSetting,
  owner: Owner,
  address: string,
  at: Date,
): Promise<void> {
  const deps = { mongo, stores, audit: operatorsAudit(stores), now: () => at };
  await setWallet(deps, { ...owner, network: 'ethereum', address });
}

/** Steps that write to the record behind a workflow's back, on other stores if need be. */
export function activitiesBehind(setting: WorkflowSetting, stores: Stores = setting.stores) {
  const deps = {
    mongo: setting.mongo,
    stores,
    temporal: setting.env.client,
    webhookQueue: 'unused',
    payTokenKey: randomBytes(32),
    log: createLogger('behind', 'silent'),
  };
  return { ...createCryptoPaymentActivities(deps), ...createCryptoSettlementActivities(deps) };
}

/** Takes coins off a balance, as a settlement does. @returns brings them back */
export async function spend(
  setting: WorkflowSetting,
  account_id: string,
  amount: bigint,
): Promise<() => Promise<void>> {
  const resource_id = randomUUID();
  const about = {
    ...{ resource_id, account_id, livemode: false, currency: bookCurrency(COIN) },
    at: new Date().toISOString(),
  };
  const post = (posting: NewEntry) => postOnce(setting, posting);
  await post({
    ...about,
    kind: 'crypto_settlement_reserved',
    legs: ENTRY_LINES.crypto_settlement_reserved(amount),
  });
  return () =>
    post({
      ...about,
      kind: 'crypto_settlement_released',
      legs: ENTRY_LINES.crypto_settlement_released(amount),
    });
}

async function open(
  { env, queues, connectorKey }: WorkflowSetting,
  kind: 'crypto_payment' | 'crypto_settlement',
  id: string,
  input: CryptoPaymentInput | CryptoSettlementInput,
) {
  const { workflowType, workflowId } = LIFECYCLES[kind];
  await askTwice(() =>
    env.client.workflow.executeUpdateWithStart('open', {
      updateId: 'open',
      startWorkflowOperation: new WithStartWorkflowOperation(workflowType, {
        ...firstRun(kind, id, input, queues.lifecycle, undefined),
        workflowIdConflictPolicy: 'USE_EXISTING',
        workflowIdReusePolicy: 'REJECT_DUPLICATE',
      }),
    }),
  );
  const handle = env.client.workflow.getHandle(workflowId(id));
  const { livemode, connector } = input;
  /** Reports as a connector has to: on live with a mac. */
  const report = async (name: CallbackName, more: object = {}) => {
    const facts = callback({ occurred_at: new Date(0).toISOString(), ...more });
    if (!livemode) return await handle.signal(name, facts);
    const told = { connector, resource: kind, resource_id: id, name, callback: facts };
    const mac = signCallback(await connectorKey(connector), told);
    return await handle.signal(name, { ...facts, mac });
  };
  return {
    handle,
    report,
    deposit: (transaction_id: string, amount: bigint, confirmations: number, more: object = {}) =>
      report('deposit', { transaction_id, amount: String(amount), confirmations, ...more }),
  };
}

/** Money of one coin, as its balance shows it. */
export async function balanceOf({ stores }: WorkflowSetting, account_id: string) {
  const [row] = await stores.ledger.balances(account_id, false);
  return { available: String(row?.available ?? 0), reserved: String(row?.reserved ?? 0) };
}

/** Waits for the mark of a payment. */
export function marked({ stores }: WorkflowSetting, id: string, mark: string | null) {
  return eventually(String(mark), async () => {
    const payment = await stores.crypto_payments.get(id);
    return payment?.attention === mark && payment;
  });
}

/** Waits until the record of a payment is in a state. */
export function stands({ stores }: WorkflowSetting, id: string, status: string) {
  return eventually(status, async () => {
    const payment = await stores.crypto_payments.get(id);
    return payment?.status === status && payment;
  });
}
