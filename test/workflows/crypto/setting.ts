import { randomBytes, randomUUID } from 'node:crypto';
import { WithStartWorkflowOperation } from '@temporalio/client';
import { createCryptoPaymentActivities } from '../../../activities/crypto-payments';
import { createCryptoSettlementActivities } from '../../../activities/crypto-settlements';
import { createLogger } from '../../../src/base/log';
import { signCallback } from '../../../src/callbacks/verify';
import type { CallbackName } from '../../../src/domain/banks/callback';
import { bookCurrency } from '../../../src/domain/crypto/assets';
import type {
  CryptoPaymentInput,
  CryptoSettlementInput,
} from '../../../src/domain/crypto/workflow';
import type { NewEntry } from '../../../src/ledger/entries';
import { ENTRY_LINES } from '../../../src/ledger/entry-lines';
import { toBigInt } from '../../../src/ledger/ledger-accounts';
import { verifyLedger } from '../../../src/ledger-check/verify';
import { type Documents, LIFECYCLES } from '../../../src/lifecycles';
import { setWallet } from '../../../src/service/money/wallets';
import type { Stores } from '../../../src/store';
import { firstRun } from '../../../src/temporal/start';
import { operatorsAudit } from '../../support/audit';
import { recordKey } from '../../support/records';
import { type ScriptedChain, scriptedChain } from '../../support/scripted-chain';
import { askTwice } from '../../support/skipping-server';
import { callback, type WorkflowSetting, withBank } from '../../support/workflow-setting';
import { postOnce } from '../../support/write-once';
import { ACT, track } from '../lifecycles';

export const ETHER = 10n ** 18n;
export const WALLET = '0x52908400098527886E0F7030069857D2E4169EE7';
export const ETH = { asset: 'ETH', network: 'ethereum', method: 'eth_ethereum' } as const;
const currency = bookCurrency(ETH);

interface PaymentOptions {
  id?: string;
  livemode?: boolean;
}

export type TrackedCryptoPayment = Awaited<ReturnType<typeof openPayment>>;
export type TrackedSettlement = Awaited<ReturnType<typeof settle>>;

/** Runs the story of a crypto payment at a chain of its own. */
export const withPayment = (
  setting: WorkflowSetting,
  story: (payment: TrackedCryptoPayment) => Promise<unknown>,
  { chain = scriptedChain(), ...options }: PaymentOptions & { chain?: ScriptedChain } = {},
) =>
  withBank(setting, chain, async (connector) => {
    await story(await openPayment(setting, connector, options));
  });

/** Opens a payment of one ether as the API does. */
export async function openPayment(
  setting: WorkflowSetting,
  connector: string,
  { id = randomUUID(), livemode = false }: PaymentOptions = {},
) {
  const account_id = `acct_${id}`;
  const routing = {
    ...{ account_id, livemode, amount: 10_000, currency: 'EUR', ...ETH, connector },
    expires_in_seconds: 1_800,
  };
  const input: CryptoPaymentInput = { ...routing, crypto_payment_id: id, request_id: 'req-1' };
  const crypto_payment = { reference: null, metadata: '{}' };
  await recordKey(setting.stores, 'createCryptoPayment', id, input, { crypto_payment, routing });
  const { get } = setting.stores.crypto_payments;
  return await open(setting, 'crypto_payment', id, input, get);
}

/** Opens a settlement of one ether, the whole balance. */
export async function openSettlement(
  setting: WorkflowSetting,
  connector: string,
  changes: Partial<CryptoSettlementInput> = {},
) {
  const owner = await openMerchant(setting);
  return await settle(setting, connector, { ...owner, ...changes });
}

/** Opens a settlement of the whole balance, unless the changes say otherwise. */
export async function settle(
  setting: WorkflowSetting,
  connector: string,
  { crypto_settlement_id: id = randomUUID(), ...changes }: Owner & Partial<CryptoSettlementInput>,
) {
  const settlement = { amount: null, currency, ...ETH, connector, ...changes };
  const input = { ...settlement, crypto_settlement_id: id, request_id: 'req-2' };
  await recordKey(setting.stores, 'createCryptoSettlement', id, input, { settlement });
  const { get } = setting.stores.crypto_settlements;
  return await open(setting, 'crypto_settlement', id, input, get);
}

/** Account in one of its environments. */
interface Owner {
  account_id: string;
  livemode: boolean;
}

/** Opens an account with a balance of one ether and a wallet that has been valid for long. */
export async function openMerchant(setting: WorkflowSetting, livemode = false): Promise<Owner> {
  const { mongo, stores } = setting;
  const owner = { account_id: `acct_${randomUUID()}`, livemode };
  await credit(setting, owner, ETHER);
  const deps = { mongo, stores, audit: operatorsAudit(stores), now: () => new Date(0) };
  await setWallet(deps, { ...owner, network: 'ethereum', address: WALLET });
  return owner;
}

/** Credits a balance as a deposit does. */
export const credit = (setting: WorkflowSetting, owner: Owner, amount: bigint) =>
  post(setting, owner, {
    ...({ kind: 'crypto_payment_credited', resource_id: randomUUID(), step: 'tx' } as const),
    lines: ENTRY_LINES.crypto_payment_credited('chain', amount),
  });

/** Debits a balance as a settlement does. @returns credits it again */
export async function debit(setting: WorkflowSetting, owner: Owner, amount: bigint) {
  const resource_id = randomUUID();
  await post(setting, owner, {
    ...({ kind: 'crypto_settlement_reserved', resource_id } as const),
    lines: ENTRY_LINES.crypto_settlement_reserved(amount),
  });
  const release = { kind: 'crypto_settlement_released', resource_id } as const;
  const lines = ENTRY_LINES.crypto_settlement_released(amount);
  return () => post(setting, owner, { ...release, lines });
}

const post = (
  setting: WorkflowSetting,
  { account_id, livemode }: Owner,
  entry: Omit<NewEntry, 'account_id' | 'livemode' | 'currency' | 'at'>,
) => postOnce(setting, { account_id, livemode, currency, at: new Date().toISOString(), ...entry });

/** Builds activities that write to the database behind a workflow's back. */
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

type Kind = 'crypto_payment' | 'crypto_settlement';

async function open<K extends Kind>(
  setting: WorkflowSetting,
  kind: K,
  id: string,
  input: CryptoPaymentInput | CryptoSettlementInput,
  get: (id: string) => Promise<Documents[K] | null>,
) {
  const { env, mongo, queues, stores, connectorKey } = setting;
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
  const { account_id, livemode, connector } = input;
  const subject = track(kind, setting, id, account_id, handle, get);
  /** Reports as a connector does, on live with a signature. */
  const report = async (name: CallbackName, more: object = {}) => {
    const facts = callback({ occurred_at: new Date(0).toISOString(), ...more });
    if (!livemode) return await handle.signal(name, facts);
    const signed = { connector, resource: kind, resource_id: id, name, callback: facts };
    const signature = signCallback(await connectorKey(connector), signed);
    return await handle.signal(name, { ...facts, mac: signature });
  };
  return {
    ...subject,
    livemode,
    connector,
    report,
    deposit: (transaction_id: string, amount: bigint, confirmations: number, more: object = {}) =>
      report('deposit', { transaction_id, amount: String(amount), confirmations, ...more }),
    act: (name: string, more: object = {}) => subject.act(name, { ...ACT, ...more }),
    actAfterEnd: (name: string, more: object = {}) =>
      subject.actAfterEnd(name, { ...ACT, ...more }),
    /** Reports to a resource whose workflow has ended, until it has ended again. */
    reportAfterEnd: (name: CallbackName, more: object = {}) =>
      subject.report(name, { occurred_at: new Date(0).toISOString(), ...more }),
    /** Balance of its account in ether. */
    balance: async () => {
      const [row] = await stores.ledger.balances(account_id, livemode);
      return { available: String(row?.available ?? 0), reserved: String(row?.reserved ?? 0) };
    },
    /** Its rows of the register. */
    movements: () => stores.movements.forResource(id),
    /** Sum of all lines of a ledger account in its account's book. */
    sum: async (account: string, asset = 'ETH') => {
      const { entries } = stores.ledger.collections;
      const book = `${account_id}:sandbox:${asset}.ethereum`;
      return (await entries.find({ book }).toArray())
        .flatMap(({ lines }) => lines)
        .filter((line) => line.account === account)
        .reduce((sum, { amount }) => sum + (toBigInt(amount) ?? 0n), 0n);
    },
    /** Differences that `ledger verify` finds about it. */
    differences: async () => {
      const { dbName } = stores.ledger.collections.books;
      const { differences } = await verifyLedger(mongo, dbName, { full: true });
      return differences.filter((each) => JSON.stringify(each).includes(id));
    },
  };
}
