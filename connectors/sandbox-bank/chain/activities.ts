import type { MongoClient } from 'mongodb';
import { assetRules, type Coin, unitsOf } from '../../../src/domain/crypto';
import type {
  AddressAnswer,
  AddressInstruction,
  CryptoConnectorActivities,
  RateAnswer,
  RateQuestion,
  ScreeningAnswer,
} from '../../contract/crypto';
import { addressOf } from './addresses';
import { REQUIRED_CONFIRMATIONS, transactionId } from './blocks';
import { payerBehaviourOf } from './magic-amounts';
import { planDeposit, planPayer } from './plan';
import { quoteOf } from './rates';
import { lookUpSettlement, type SettlementDeps, sendSettlement } from './settle';
import type { TransactionStore } from './transactions';
import type { WalletStore } from './wallets';

export interface ChainActivityDeps extends SettlementDeps {
  mongo: MongoClient;
  wallets: WalletStore;
  transactions: TransactionStore;
  /** Base of the chain's pages, without a slash at the end. */
  baseUrl: string;
}

/** Chain of EIP-155 that no real network has (Hardhat's), so that no wallet pays by mistake. */
const CHAIN_ID = 31_337;

/** Activities of the simulated chain: its side of the contract of crypto connectors. */
export function createChainActivities(deps: ChainActivityDeps): CryptoConnectorActivities {
  return {
    quoteRate: (input) => quoteRate(deps, input),
    giveAddress: (input) => giveAddress(deps, input),
    screenSource: ({ transaction_id }) => screenSource(deps, transaction_id),
    sendSettlement: (input) => sendSettlement(deps, input),
    lookUpSettlement: ({ crypto_settlement_id }) => lookUpSettlement(deps, crypto_settlement_id),
  };
}

const LIVE = {
  outcome: 'declined',
  code: 'live_not_supported',
  message: 'The sandbox chain takes no live payments.',
} as const;

const UNKNOWN = {
  outcome: 'declined',
  code: 'asset_not_supported',
  message: 'The sandbox chain does not know this asset on this network.',
} as const;

async function quoteRate(
  { wallets }: ChainActivityDeps,
  question: RateQuestion,
): Promise<RateAnswer> {
  if (question.livemode) return LIVE;
  const coin = coinOf(question);
  if (coin === undefined) return UNKNOWN;
  if (payerBehaviourOf(question.amount) === 'declined') {
    const message = 'The sandbox chain has no rate for this amount.';
    return { outcome: 'declined', code: 'no_rate', message };
  }
  await wallets.keepPrice(question);
  return { outcome: 'quoted', ...quoteOf(coin, question.amount, question.currency) };
}

async function giveAddress(
  deps: ChainActivityDeps,
  instruction: AddressInstruction,
): Promise<AddressAnswer> {
  if (instruction.livemode) return LIVE;
  const coin = coinOf(instruction);
  if (coin === undefined) return UNKNOWN;
  const { crypto_payment_id } = instruction;
  const wallet = await deps.wallets.make(instruction, addressOf[coin.network](crypto_payment_id));
  await playPayer(deps, coin, instruction);
  return {
    outcome: 'given',
    address: wallet.address,
    required_confirmations: REQUIRED_CONFIRMATIONS,
    play_url: `${deps.baseUrl}/chain/${wallet.token}`,
    ...(coin.network === 'ethereum' ? { chain_id: CHAIN_ID } : {}),
    ...(coin.asset === 'USDC' ? { token_contract: addressOf.ethereum('token:USDC') } : {}),
  };
}

/** Adds the deposits that a magic amount makes the payer send; a repeat adds nothing. */
async function playPayer(
  { wallets, transactions }: ChainActivityDeps,
  { network, asset }: Coin,
  { crypto_payment_id: resource_id, amount_due }: AddressInstruction,
): Promise<void> {
  const asked = await wallets.askedAmount(resource_id);
  if (asked === null) return;
  const planned = planPayer(payerBehaviourOf(asked), unitsOf(amount_due));
  for (const [i, { amount, after_ms, course, listed }] of planned.entries()) {
    const [seen, ...later] = planDeposit(course, true);
    if (seen === undefined || amount < 1n) continue;
    await transactions.add({
      _id: transactionId(network, `${resource_id}:${i}`),
      resource: 'crypto_payment',
      resource_id,
      network,
      asset,
      amount: String(amount),
      listed,
      steps: [{ ...seen, after_ms }, ...later],
    });
  }
}

/** Screens by the transaction; one that the chain does not know was simulated, and passes. */
async function screenSource(
  { transactions }: ChainActivityDeps,
  transaction: string,
): Promise<ScreeningAnswer> {
  const found = await transactions.get(transaction);
  if (found?.listed !== true) return { outcome: 'passed' };
  const reason = 'The source stands on the list of the sandbox.';
  return { outcome: 'failed', code: 'listed_source', reason };
}

function coinOf({ asset, network }: { asset: string; network: string }): Coin | undefined {
  return assetRules(asset, network);
}
