import { sha256 } from '@noble/hashes/sha2';
import { bech32, createBase58check } from '@scure/base';
import type { MongoClient } from 'mongodb';
import { checksum } from 'ox/Address';
import {
  type AssetPair,
  assetRules,
  type Network,
  parseUnits,
} from '../../../src/domain/crypto/assets';
import type {
  AddressAnswer,
  AddressInstruction,
  CryptoConnectorActivities,
  RateAnswer,
  RateQuestion,
  ScreeningAnswer,
} from '../../contract/crypto';
import { getBehavior } from '../magic-amounts';
import { CRYPTO_MAGIC_AMOUNTS } from './magic-amounts';
import { planDeposit, planPayer, REQUIRED_CONFIRMATIONS, transactionId } from './plan';
import { buildQuote } from './rates';
import { cancelSettlement, lookUpSettlement, type SettlementDeps, sendSettlement } from './settle';
import type { TransactionStore } from './transactions';
import type { WalletStore } from './wallets';

export interface ChainActivityDeps extends SettlementDeps {
  mongo: MongoClient;
  wallets: WalletStore;
  transactions: TransactionStore;
  baseUrl: string;
}

/** Hardhat's chain ID, so that no wallet pays by mistake. */
const CHAIN_ID = 31_337;

export function createChainActivities(deps: ChainActivityDeps): CryptoConnectorActivities {
  return {
    quoteRate: (input) => quoteRate(deps, input),
    giveAddress: (input) => giveAddress(deps, input),
    screenSource: ({ transaction_id }) => screenSource(deps, transaction_id),
    readChainTime: async () => {
      const reported_until = await deps.transactions.reportedUntil();
      return { reported_until: reported_until.toISOString() };
    },
    sendSettlement: (input) => sendSettlement(deps, input),
    lookUpSettlement: ({ crypto_settlement_id }) => lookUpSettlement(deps, crypto_settlement_id),
    cancelSettlement: ({ crypto_settlement_id }) => cancelSettlement(deps, crypto_settlement_id),
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
  const networkAsset = assetRules(question.asset, question.network);
  if (networkAsset === undefined) return UNKNOWN;
  if (getBehavior(CRYPTO_MAGIC_AMOUNTS, question.amount) === 'declined') {
    const message = 'The sandbox chain has no rate for this amount.';
    return { outcome: 'declined', code: 'no_rate', message };
  }
  await wallets.storePrice(question);
  return { outcome: 'quoted', ...buildQuote(networkAsset, question.amount, question.currency) };
}

async function giveAddress(
  deps: ChainActivityDeps,
  instruction: AddressInstruction,
): Promise<AddressAnswer> {
  if (instruction.livemode) return LIVE;
  const networkAsset = assetRules(instruction.asset, instruction.network);
  if (networkAsset === undefined) return UNKNOWN;
  const { crypto_payment_id } = instruction;
  const wallet = await deps.wallets.make(
    instruction,
    deriveAddress[networkAsset.network](crypto_payment_id),
  );
  await playPayer(deps, networkAsset, instruction);
  return {
    outcome: 'given',
    address: wallet.address,
    required_confirmations: REQUIRED_CONFIRMATIONS,
    play_url: `${deps.baseUrl}/chain/${wallet.token}`,
    ...(networkAsset.network === 'ethereum' ? { chain_id: CHAIN_ID } : {}),
    ...(networkAsset.asset === 'USDC'
      ? { token_contract: deriveAddress.ethereum('token:USDC') }
      : {}),
  };
}

/** A repeat adds nothing. */
async function playPayer(
  { wallets, transactions }: ChainActivityDeps,
  { network, asset }: AssetPair,
  { crypto_payment_id: resource_id, amount_due }: AddressInstruction,
): Promise<void> {
  const requestedAmount = await wallets.getRequestedAmount(resource_id);
  if (requestedAmount === null) return;
  const deposits = planPayer(
    getBehavior(CRYPTO_MAGIC_AMOUNTS, requestedAmount),
    parseUnits(amount_due),
  );
  for (const [i, { amount, after_ms, course, listed }] of deposits.entries()) {
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

/** A transaction that the chain does not know was simulated, and passes. */
async function screenSource(
  { transactions }: ChainActivityDeps,
  transaction: string,
): Promise<ScreeningAnswer> {
  const chainTransaction = await transactions.get(transaction);
  if (chainTransaction?.listed !== true) return { outcome: 'passed' };
  const reason = 'The source stands on the list of the sandbox.';
  return { outcome: 'failed', code: 'listed_source', reason };
}

const TRON = 0x41;

/**
 * Derives valid addresses without a known key. Bitcoin's are of its test network, so that nobody
 * sends real funds there.
 */
export const deriveAddress: Record<Network, (name: string) => string> = {
  bitcoin: (name) => bech32.encode('tb', [0, ...bech32.toWords(deriveBytes(name))]),
  ethereum: (name) => checksum(`0x${Buffer.from(deriveBytes(name)).toString('hex')}`),
  tron: (name) => createBase58check(sha256).encode(Uint8Array.of(TRON, ...deriveBytes(name))),
};

function deriveBytes(name: string): Uint8Array {
  return sha256(`sandbox-chain:${name}`).subarray(0, 20);
}
