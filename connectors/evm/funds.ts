import type { PrivateKeyAccount } from 'viem/accounts';
import type { Asset, Assets } from './assets';
import type { EvmNode } from './node';
import type { NonceLine } from './nonce-line';
import type { Settlement, Settlements } from './settlements';
import { type Fees, firstFees } from './signing';

export interface FundsDeps {
  node: EvmNode;
  assets: Assets;
  account: PrivateKeyAccount;
  nonces: NonceLine;
  settlements: Settlements;
  /** Most wei a unit of gas. */
  feeCap: bigint;
}

/** Gas that there must be funds for, before a payment is tried out. */
const GAS_HEADROOM = 100_000n;

/** Fees to begin with. @throws Error while gas is too dear */
export async function affordableFees({
  node,
  feeCap,
}: Pick<FundsDeps, 'node' | 'feeCap'>): Promise<Fees> {
  const fees = firstFees(await node.fees(), feeCap);
  if (fees === undefined) throw new Error('Gas is dearer than this connector may pay.');
  return fees;
}

/** @throws Error when the account does not hold the amount beside what it owes already. */
export async function checkFunds(
  { node, nonces, settlements, assets, account }: FundsDeps,
  { asset, amount }: Pick<Settlement, 'asset' | 'amount'>,
  { fee_max }: Fees,
): Promise<void> {
  await nonces.check();
  const owed = await settlements.waiting(account.address);
  const sum = (of: Asset) =>
    owed.filter((row) => row.asset === of).reduce((all, row) => all + BigInt(row.amount), 0n);
  const gas = owed.reduce((all, row) => all + BigInt(row.gas) * dearest(row), 0n);
  const wei = (asset === 'ETH' ? BigInt(amount) : 0n) + GAS_HEADROOM * fee_max;
  const { address } = account;
  const short = (what: string) => new Error(`The paying account holds too little ${what}.`);
  if ((await node.balanceOf(address)) < sum('ETH') + gas + wei) throw short('ether');
  if (asset === 'ETH' || assets.usdc === undefined) return;
  const held = await node.tokenBalanceOf(assets.usdc, address);
  if (held < sum(asset) + BigInt(amount)) throw short(asset);
}

function dearest({ attempts }: Settlement): bigint {
  return BigInt(attempts.at(-1)?.fee_max ?? 0);
}
