import { type Address, encodeFunctionData, erc20Abi, type Hex, keccak256 } from 'viem';
import type { PrivateKeyAccount } from 'viem/accounts';
import type { Assets } from './assets';
import type { Call } from './node';
import type { Attempt, Settlement } from './settlements';

/** Wei a unit of gas. */
export interface Fees {
  fee_max: bigint;
  tip: bigint;
}

/** Price of gas: the newest base, and what miners are tipped. */
export interface GasPrice {
  base: bigint;
  tip: bigint;
}

/** Part by which nodes want a replacement to pay more: an eighth covers the tenth that they ask. */
const RAISE = 8n;

/** Money of a settlement, and where it goes. */
type Payment = Pick<Settlement, 'asset' | 'amount' | 'wallet' | 'from'>;

/** Call that pays a settlement. @throws Error for a token whose contract is not known */
export function buildCall({ usdc }: Assets, { asset, amount, wallet, from }: Payment): Call {
  if (asset === 'ETH') return { from, to: wallet, value: BigInt(amount), data: '0x' };
  if (usdc === undefined) throw new Error('The contract of USDC is not configured.');
  return { from, to: usdc, value: 0n, data: encodeTransfer(wallet, BigInt(amount)) };
}

function encodeTransfer(to: Address, amount: bigint): Hex {
  return encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [to, amount] });
}

/** Base to which the next block may rise at most. */
export function nextBase({ base }: GasPrice): bigint {
  return base + base / 8n + 1n;
}

/** Fees for a first try; undefined while the chain is dearer than `cap`. */
export function firstFees({ base, tip }: GasPrice, cap: bigint): Fees | undefined {
  if (base + tip > cap) return undefined;
  // Twice the base stays enough for six full blocks in a row.
  return { fee_max: min(2n * base + tip, cap), tip };
}

/** Fees that nodes take in place of `old`; undefined where they would exceed `cap`. */
export function bumpFees(old: Fees, { base, tip }: GasPrice, cap: bigint): Fees | undefined {
  const fees = {
    tip: max(old.tip + old.tip / RAISE + 1n, tip),
    fee_max: max(old.fee_max + old.fee_max / RAISE + 1n, min(2n * base + tip, cap)),
  };
  return fees.fee_max > cap ? undefined : { ...fees, tip: min(fees.tip, fees.fee_max) };
}

export interface SignRequest {
  account: PrivateKeyAccount;
  chainId: number;
  call: Call;
  nonce: number;
  gas: bigint;
  fees: Fees;
  now: Date;
}

/** Signs a transaction of EIP-1559. The same facts give the same bytes. */
export async function sign({
  account,
  chainId,
  call,
  nonce,
  gas,
  fees,
  now,
}: SignRequest): Promise<Attempt> {
  const { to, value, data } = call;
  const bytes = await account.signTransaction({
    type: 'eip1559',
    chainId,
    nonce,
    to,
    value,
    data,
    gas,
    maxFeePerGas: fees.fee_max,
    maxPriorityFeePerGas: fees.tip,
  });
  const { fee_max, tip } = fees;
  return {
    hash: keccak256(bytes),
    bytes,
    fee_max: String(fee_max),
    tip: String(tip),
    signed_at: now,
  };
}

function min(one: bigint, other: bigint): bigint {
  return one < other ? one : other;
}

function max(one: bigint, other: bigint): bigint {
  return one > other ? one : other;
}
