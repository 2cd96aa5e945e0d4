import type { EvmContext } from './context';
import type { Settlement } from './settlements';
import { buildCall, bumpFees, nextBase, sign } from './signing';

/** The node may have dropped the bytes. */
const REBROADCAST_MS = 60_000;

/**
 * Broadcasts the newest bytes. Safe to repeat.
 * @returns the node's reason for a refusal, such as that a block has the transaction
 */
export async function broadcast(
  { node, settlements, now }: EvmContext,
  { _id, attempts }: Settlement,
): Promise<string | undefined> {
  const newest = attempts.at(-1);
  if (newest === undefined) return undefined;
  const answer = await node.broadcast(newest.bytes);
  if (answer.outcome === 'refused') return answer.reason;
  await settlements.markBroadcast(_id, { hash: newest.hash, at: now() });
  return undefined;
}

/**
 * Broadcasts unmined settlements again, and raises the fee of the first, which blocks all others.
 */
export async function rebroadcast(deps: EvmContext): Promise<void> {
  const waiting = await deps.settlements.waiting(deps.account.address);
  for (const [index, settlement] of waiting.entries()) {
    const current = index === 0 ? await bumpFee(deps, settlement) : settlement;
    const { attempts, broadcast: last } = current;
    const age = last === null ? REBROADCAST_MS : deps.now().getTime() - last.at.getTime();
    if (last?.hash === attempts.at(-1)?.hash && age < REBROADCAST_MS) continue;
    const reason = await broadcast(deps, current);
    if (reason === undefined) continue;
    const about = { crypto_settlement_id: current._id, code: reason };
    deps.log.warn(about, 'the node did not take a settlement');
  }
}

/** Stores bytes with a higher fee and the same nonce, if the newest have waited long enough. */
async function bumpFee(deps: EvmContext, settlement: Settlement): Promise<Settlement> {
  const { account, assets, chainId, settlements, now, log, raiseAfterMs } = deps;
  const { attempts, nonce, gas } = settlement;
  const newest = attempts.at(-1);
  if (newest === undefined) return settlement;
  if (now().getTime() - newest.signed_at.getTime() < raiseAfterMs) return settlement;
  const price = await deps.node.fees();
  const old = { fee_max: BigInt(newest.fee_max), tip: BigInt(newest.tip) };
  // Bytes that the node has not accepted get a higher fee only if the next block may cost more.
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
  log.info({ ...about, attempt: attempts.length + 1 }, 'the fee of a settlement was raised');
  return { ...settlement, attempts: [...attempts, attempt] };
}
