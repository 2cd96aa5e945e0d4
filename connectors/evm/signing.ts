import { encodeFunctionData, erc20Abi, keccak256 } from 'viem';
import type { PrivateKeyAccount } from 'viem/accounts';
import type { Assets } from './assets';
import type { Call } from './node';
import type { Attempt, Settlement } from './settlements';

/** Wei per unit of gas. */
export interface Fees {
  fee_max: bigint;
  tip: bigint;
}

export interface GasPrice {
  base: bigint;
  tip: bigint;
}

/** A replacement pays an eighth more: that covers the tenth that nodes require. */
const RAISE = 8n;

export type Payment = Pick<Settlement, 'asset' | 'amount' | 'wallet' | 'from'>;

/** @throws Error for a token whose contract is unknown */
export function buildCall({ usdc }: Assets, { asset, amount, wallet, from }: Payment): Call {
  if (asset === 'ETH') return { from, to: wallet, value: BigInt(amount), data: '0x' };
  if (usdc === undefined) throw new Error('The contract of USDC is not configured.');
  const args = [wallet, BigInt(amount)] as const;
  const data = encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args });
  return { from, to: usdc, value: 0n, data };
}

export function nextBase({ base }: GasPrice): bigint {
  return base + base / 8n + 1n;
}

/** @returns undefined while the chain costs more than `cap` */
export function firstFees({ base, tip }: GasPrice, cap: bigint): Fees | undefined {
  if (base + tip > cap) return undefined;
  // Twice the base is enough for six full blocks in a row.
  return { fee_max: min(2n * base + tip, cap), tip };
}

/** Fees that nodes accept instead of `old`; undefined above `cap`. */
export function bumpFees(old: Fees, { base, tip }: GasPrice, cap: bigint): Fees | undefined {
  const fees = {
    tip: max(old.tip + old.tip / RAISE + 1n, tip),
    fee_max: max(old.fee_max + old.fee_max / RAISE + 1n, min(2n * base + tip, cap)),
  };
  return fees.fee_max > cap ? undefined : { ...fees, tip: min(fees.tip, fees.fee_max) };
}

interface SignRequest {
  account: PrivateKeyAccount;
  chainId: number;
  call: Call;
  nonce: number;
  gas: bigint;
  fees: Fees;
  now: Date;
}

/** Signs an EIP-1559 transaction; the same request gives the same bytes. */
export async function sign(request: SignRequest): Promise<Attempt> {
  const { account, call, fees, now, ...limits } = request;
  const { to, value, data } = call;
  const bytes = await account.signTransaction({
    type: 'eip1559',
    ...limits,
    to,
    value,
    data,
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
