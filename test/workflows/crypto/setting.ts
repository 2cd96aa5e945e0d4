import { randomUUID } from 'node:crypto';
import { WithStartWorkflowOperation } from '@temporalio/client';
import type { CallbackName } from '../../../src/domain/callback';
import { bookCurrency } from '../../../src/domain/crypto';
import type {
  CryptoPaymentInput,
  CryptoSettlementInput,
} from '../../../src/domain/crypto-workflow';
import { LEGS, type NewPosting } from '../../../src/ledger/postings';
import { LIFECYCLES } from '../../../src/lifecycles';
import { inTransaction } from '../../../src/mongo';
import { firstRun } from '../../../src/temporal/start';
import { eventually } from '../../support/http';
import { callback, claim, type WorkflowSetting } from '../../support/workflow-setting';

export const ETHER = 10n ** 18n;
export const WALLET = '0x52908400098527886E0F7030069857D2E4169EE7';
const COIN = { asset: 'ETH', network: 'ethereum', method: 'eth_ethereum' } as const;

/** A payment of one ether, opened as the API does it. */
export async function openPayment(setting: WorkflowSetting, connector: string) {
  const id = randomUUID();
  const account_id = `acct_${id}`;
  const routing = {
    ...{ account_id, livemode: false, amount: 10_000, currency: 'EUR', ...COIN, connector },
    expires_in_seconds: 1_800,
  };
  const input: CryptoPaymentInput = { ...routing, crypto_payment_id: id, request_id: 'req-1' };
  const crypto_payment = { reference: null, metadata: '{}' };
  await claim(setting, 'createCryptoPayment', id, input, { crypto_payment, routing });
  return { id, account_id, ...(await open(setting, 'crypto_payment', id, input)) };
}

/** A settlement of a balance of one ether. */
export async function openSettlement(
  setting: WorkflowSetting,
  connector: string,
  changes: Partial<CryptoSettlementInput> = {},
) {
  const id = randomUUID();
  const account_id = `acct_${id}`;
  await credit(setting, account_id);
  const currency = bookCurrency(COIN);
  const settlement = {
    ...{ account_id, livemode: false, amount: null, currency, ...COIN, connector, ...changes },
  };
  const input = { ...settlement, crypto_settlement_id: id, request_id: 'req-2' };
  await claim(setting, 'createCryptoSettlement', id, input, { settlement });
  return { id, account_id, ...(await open(setting, 'crypto_settlement', id, input)) };
}

/** A wallet that counts, and a balance of one ether. */
async function credit({ stores, mongo }: WorkflowSetting, account_id: string): Promise<void> {
  const now = new Date(0).toISOString();
  const wallet = { account_id, livemode: false, network: 'ethereum', address: WALLET } as const;
  await stores.wallets.set(wallet, { now, counts_from: now });
  const posting = {
    ...({ kind: 'crypto_payment_credited', resource_id: randomUUID(), step: 'tx' } as const),
    ...{ account_id, livemode: false, currency: bookCurrency(COIN) },
    ...{ at: new Date().toISOString(), legs: LEGS.crypto_payment_credited('chain', ETHER) },
  } as const;
  await inTransaction(mongo, (session) => stores.ledger.post(posting, session));
}

/** Takes coins off a balance, as a settlement does. @returns brings them back */
export async function spend(
  { stores, mongo }: WorkflowSetting,
  account_id: string,
  amount: bigint,
): Promise<() => Promise<void>> {
  const resource_id = randomUUID();
  const about = {
    ...{ resource_id, account_id, livemode: false, currency: bookCurrency(COIN) },
    at: new Date().toISOString(),
  };
  const post = (posting: NewPosting) =>
    inTransaction(mongo, (session) => stores.ledger.post(posting, session));
  await post({
    ...about,
    kind: 'crypto_settlement_reserved',
    legs: LEGS.crypto_settlement_reserved(amount),
  });
  return () =>
    post({
      ...about,
      kind: 'crypto_settlement_released',
      legs: LEGS.crypto_settlement_released(amount),
    });
}

async function open(
  { env, queues }: WorkflowSetting,
  kind: 'crypto_payment' | 'crypto_settlement',
  id: string,
  input: CryptoPaymentInput | CryptoSettlementInput,
) {
  const { workflowType, workflowId } = LIFECYCLES[kind];
  const startWorkflowOperation = new WithStartWorkflowOperation(workflowType, {
    ...firstRun(kind, id, input, queues.lifecycle, undefined),
    workflowIdConflictPolicy: 'USE_EXISTING',
    workflowIdReusePolicy: 'REJECT_DUPLICATE',
  });
  await env.client.workflow.executeUpdateWithStart('open', {
    updateId: 'open',
    startWorkflowOperation,
  });
  const handle = env.client.workflow.getHandle(workflowId(id));
  const report = (name: CallbackName, more: object = {}) => {
    const occurred_at = new Date(0).toISOString();
    return handle.signal(name, callback({ occurred_at, ...more }));
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
