import type { PrivateKeyAccount } from 'viem/accounts';
import type { Logger } from '../../src/base/log';
import type { Assets } from './assets';
import type { EvmNode } from './node';
import type { Attempt, Settlement, Settlements } from './settlements';
import { buildCall, bumpFees, nextBase, sign } from './signing';
import type { StepHook } from './steps';

/** Time after which bytes are handed to the node again, which may have dropped them. */
const REBROADCAST_MS = 60_000;

export interface BroadcastDeps {
  node: Pick<EvmNode, 'broadcast'>;
  settlements: Settlements;
  pass: StepHook;
  now: () => Date;
}

export interface RebroadcastDeps extends BroadcastDeps {
  node: Pick<EvmNode, 'broadcast' | 'fees'>;
  assets: Assets;
  chainId: number;
  account: PrivateKeyAccount;
  /** Most wei a unit of gas. */
  feeCap: bigint;
  /** Time after which a settlement that no block has taken pays more. */
  raiseAfterMs: number;
  log: Logger;
}

/**
 * Hands the newest bytes to the node, and notes when it took them. Safe to repeat.
 * @returns words of the node when it did not take them, such as after a block has
 */
export async function broadcast(
  { node, settlements, pass, now }: BroadcastDeps,
  { _id, attempts }: Settlement,
): Promise<string | undefined> {
  const newest = attempts.at(-1);
  if (newest === undefined) return undefined;
  const answer = await node.broadcast(newest.bytes);
  pass('settlement broadcast');
  if (answer.outcome === 'refused') return answer.reason;
  await settlements.markBroadcast(_id, { hash: newest.hash, at: now() });
  return undefined;
}

/**
 * Sees to the settlements that no block has taken: broadcasts again what the node may have lost, and
 * raises the fee of the first, which holds up all others.
 */
export async function rebroadcast(deps: RebroadcastDeps): Promise<void> {
  const waiting = await deps.settlements.waiting(deps.account.address);
  for (const [index, settlement] of waiting.entries()) {
    const current = index === 0 ? await bumpFee(deps, settlement) : settlement;
    if (!isDue(deps, current)) continue;
    const reason = await broadcast(deps, current);
    if (reason === undefined) continue;
    const about = { crypto_settlement_id: current._id, code: reason };
    deps.log.warn(about, 'the node did not take a settlement');
  }
}

function isDue({ now }: RebroadcastDeps, { attempts, broadcast }: Settlement): boolean {
  if (broadcast === null || broadcast.hash !== attempts.at(-1)?.hash) return true;
  return now().getTime() - broadcast.at.getTime() >= REBROADCAST_MS;
}

/** Keeps new bytes with a higher fee and the same nonce, where the newest have waited long enough. */
async function bumpFee(deps: RebroadcastDeps, settlement: Settlement): Promise<Settlement> {
  const { account, assets, chainId, settlements, now, log } = deps;
  const { attempts, nonce, gas } = settlement;
  const newest = attempts.at(-1);
  if (newest === undefined || !isOld(deps, newest)) return settlement;
  const price = await deps.node.fees();
  const old = { fee_max: BigInt(newest.fee_max), tip: BigInt(newest.tip) };
  // Bytes that the node has not taken get a higher fee only where the next block may be too dear.
  if (settlement.broadcast?.hash !== newest.hash && nextBase(price) <= old.fee_max) {
    return settlement;
  }
  const fees = bumpFees(old, price, deps.feeCap);
  const about = { crypto_settlement_id: settlement._id };
  if (fees === undefined) {
    log.warn(about, 'the fee of a settlement cannot be raised any more: it waits');
    return settlement;
  }
  const call = buildCall(assets, settlement);
  const request = { account, chainId, call, nonce, gas: BigInt(gas), fees, now: now() };
  const attempt = await sign(request);
  if (!(await settlements.addAttempt(settlement, attempt))) return settlement;
  deps.pass('fee raised');
  log.info({ ...about, attempt: attempts.length + 1 }, 'the fee of a settlement was raised');
  return { ...settlement, attempts: [...attempts, attempt] };
}

function isOld({ now, raiseAfterMs }: RebroadcastDeps, { signed_at }: Attempt): boolean {
  return now().getTime() - signed_at.getTime() >= raiseAfterMs;
}
