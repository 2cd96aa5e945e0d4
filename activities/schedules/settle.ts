import { type Client, WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import { deriveUuid } from '../../src/base/ids';
import {
  type AssetPair,
  bookCurrency,
  cryptoMethod,
  parseBookCurrency,
} from '../../src/domain/crypto/assets';
import type { SettleResult } from '../../src/domain/crypto/settle';
import { leastSettlement } from '../../src/domain/crypto/settlement';
import type { CryptoSettlementInput } from '../../src/domain/crypto/workflow';
import { MAIN_BALANCE } from '../../src/domain/money/money';
import { LIFECYCLES } from '../../src/lifecycles';
import type { Connectors } from '../../src/routing';
import { readRouting } from '../../src/service/banks/routing/read';
import type { Stores } from '../../src/store';
import { addressAt, type WalletDocument } from '../../src/store/wallets';
import { firstRun } from '../../src/temporal/start';
import { reportProgress } from '../shared/record';

const PAGE = 100;

export interface SettleDeps {
  stores: Pick<
    Stores,
    | 'accounts'
    | 'connectorPauses'
    | 'ledger'
    | 'movements'
    | 'routingRules'
    | 'scheduleRuns'
    | 'wallets'
  >;
  temporal: Client;
  lifecycleQueue: string;
  connectors: Connectors;
  now: () => Date;
}

export type SettleActivities = ReturnType<typeof createSettleActivities>;

export function createSettleActivities(deps: SettleDeps) {
  return {
    /** Derives ids from the run, so that a repeat starts no settlement twice. */
    settleBalances: async ({ run }: { run: string }): Promise<SettleResult> => {
      const result = await settleBalances(deps, run);
      await deps.stores.scheduleRuns.note('settlements', deps.now());
      return result;
    },
  };
}

async function settleBalances(deps: SettleDeps, run: string): Promise<SettleResult> {
  const total: SettleResult = { wallets: 0, started: 0 };
  for (let after = ''; ; ) {
    const page = await deps.stores.wallets.page(after, PAGE);
    for (const wallet of page) {
      total.wallets += 1;
      total.started += await settleWallet(deps, wallet, run);
      reportProgress(total);
    }
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) return total;
    after = last._id;
  }
}

async function settleWallet(
  deps: SettleDeps,
  wallet: WalletDocument,
  run: string,
): Promise<number> {
  const { stores, now } = deps;
  const { account_id, livemode, network } = wallet;
  if (addressAt(wallet, now().toISOString()) === null) return 0;
  const account = await stores.accounts.get(account_id);
  if (account?.crypto !== true || account.frozen !== undefined) return 0;
  let started = 0;
  for (const { balance_account, currency, available } of await stores.ledger.balances(
    account_id,
    livemode,
  )) {
    const asset = parseBookCurrency(currency);
    if (balance_account !== MAIN_BALANCE || asset?.network !== network) continue;
    const minimum = leastSettlement({ ...asset, livemode }, null);
    const withheld = await stores.movements.sumReorged({ account_id, livemode, currency });
    if (BigInt(available) - withheld < minimum) continue;
    if (await startSettlement(deps, { account_id, livemode }, asset, run)) started += 1;
  }
  return started;
}

async function startSettlement(
  deps: SettleDeps,
  { account_id, livemode }: Pick<WalletDocument, 'account_id' | 'livemode'>,
  { asset, network }: AssetPair,
  run: string,
): Promise<boolean> {
  const currency = bookCurrency({ asset, network });
  const method = cryptoMethod({ asset, network });
  const findConnector = await readRouting(deps, { account_id, livemode });
  const connector = findConnector(method);
  if (connector === undefined) return false;
  const env = livemode ? 'live' : 'sandbox';
  const input: CryptoSettlementInput = {
    crypto_settlement_id: deriveUuid(`settlement:${run}:${account_id}:${env}:${currency}`),
    ...{ account_id, livemode, currency, asset, network, method, connector },
    amount: null,
    scheduled: true,
    request_id: `settlements-${run}`,
  };
  const { crypto_settlement_id: id } = input;
  const { workflowType } = LIFECYCLES.crypto_settlement;
  try {
    await deps.temporal.workflow.start(workflowType, {
      ...firstRun('crypto_settlement', id, input, deps.lifecycleQueue, undefined),
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
    });
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
  }
  return true;
}
