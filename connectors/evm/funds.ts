import type { PrivateKeyAccount } from 'viem/accounts';
import type { Asset, Assets } from './assets';
import type { EvmNode } from './node';
import type { Nonces } from './nonces';
import type { Settlement, Settlements } from './settlements';
import { type Fees, firstFees } from './signing';

export interface FundsDeps {
  node: EvmNode;
  assets: Assets;
  account: PrivateKeyAccount;
  nonces: Nonces;
  settlements: Settlements;
  feeCap: bigint;
}

/** Gas that the balance must cover before a payment is estimated. */
const GAS_HEADROOM = 100_000n;

/** @throws Error while gas costs too much */
export async function affordableFees({ node, feeCap }: FundsDeps): Promise<Fees> {
  const fees = firstFees(await node.fees(), feeCap);
  if (fees === undefined) throw new Error('Gas is dearer than this connector may pay.');
  return fees;
}

/** @throws Error if the account cannot cover the amount and what it owes already */
export async function checkFunds(
  { node, nonces, settlements, assets, account }: FundsDeps,
  { asset, amount }: Pick<Settlement, 'asset' | 'amount'>,
  { fee_max }: Fees,
): Promise<void> {
  await nonces.check();
  const openSettlements = await settlements.waiting(account.address);
  const sum = (of: Asset) =>
    openSettlements
      .filter((row) => row.asset === of)
      .reduce((all, row) => all + BigInt(row.amount), 0n);
  const gas = openSettlements.reduce((all, row) => all + BigInt(row.gas) * getFeeMax(row), 0n);
  const wei = (asset === 'ETH' ? BigInt(amount) : 0n) + GAS_HEADROOM * fee_max;
  const { address } = account;
  const insufficientBalance = (what: string) =>
    new Error(`The paying account holds too little ${what}.`);
  if ((await node.getBalance(address)) < sum('ETH') + gas + wei) throw insufficientBalance('ether');
  if (asset === 'ETH' || assets.usdc === undefined) return;
  const balance = await node.getTokenBalance(assets.usdc, address);
  if (balance < sum(asset) + BigInt(amount)) throw insufficientBalance(asset);
}

function getFeeMax({ attempts }: Settlement): bigint {
  return BigInt(attempts.at(-1)?.fee_max ?? 0);
}
