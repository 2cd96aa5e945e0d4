import { getAddress, isAddress, zeroAddress } from 'viem';
import { inTransaction, isDuplicateKey } from '../../src/base/mongo';
import type { CancelAnswer, Outdated } from '../contract/activities';
import type { SettlementAnswer, SettlementInstruction, SettlementLookup } from '../contract/crypto';
import { beginAttempt } from '../contract/guard';
import { type Asset, servedAsset } from './assets';
import type { EvmContext } from './context';
import { assertChain, type Call, NodeFailure } from './node';
import { getTransactionHash, type Refusal, type Settlement } from './settlements';
import { buildCall, bumpFees, type Fees, firstFees, nextBase, type Payment, sign } from './signing';

const PLAIN_GAS = 21_000n;

/**
 * Stores the signed bytes with their nonce, and only then broadcasts them. A repeat signs nothing.
 * @throws Error, with nothing stored, if it cannot be paid yet: insufficient balance, expensive
 *   gas, or a node that is unreachable, slow or on another chain
 */
export async function sendSettlement(
  deps: EvmContext,
  instruction: SettlementInstruction,
): Promise<SettlementAnswer | Outdated> {
  const { crypto_settlement_id: _id } = instruction;
  const { assertInTime } = beginAttempt(deps.now);
  const existing = await lookUpSettlement(deps, _id);
  if (existing.outcome !== 'not_found') return existing;
  const outdated = await deps.findOutdated(instruction);
  if (outdated !== undefined) return outdated;
  const payment = readPayment(deps, instruction);
  if ('code' in payment) return await refuse(deps, _id, payment);
  await assertChain(deps.node, deps.chainId);
  const call = buildCall(deps.assets, payment);
  const fees = firstFees(await deps.node.fees(), deps.feeCap);
  if (fees === undefined) throw new Error('Gas is dearer than this connector may pay.');
  await checkFunds(deps, payment, fees);
  const gas = await deps.node.estimateGas(call);
  // The node may have been slow, and the document changed meanwhile.
  const outdatedSince = await deps.findOutdated(instruction);
  if (outdatedSince !== undefined) return outdatedSince;
  if (gas === undefined) {
    assertInTime();
    return await refuse(deps, _id, REVERTS);
  }
  const margin = gas === PLAIN_GAS ? 0n : gas / 5n;
  const facts = { call, gas: gas + margin, fees };
  const settlement = await signAndStore(deps, { ...payment, _id }, facts, assertInTime);
  try {
    await broadcast(deps, settlement);
  } catch (error) {
    // Stored means accepted: the bytes are broadcast later.
    if (!(error instanceof NodeFailure)) throw error;
  }
  return await buildAnswer(deps, _id);
}

export async function lookUpSettlement(deps: EvmContext, _id: string): Promise<SettlementLookup> {
  const refusal = await deps.settlements.refusal(_id);
  if (refusal !== null) {
    return { outcome: 'refused', code: refusal.code, message: refusal.message };
  }
  return (await deps.settlements.get(_id)) === null
    ? { outcome: 'not_found' }
    : await buildAnswer(deps, _id);
}

type RefusalReason = Omit<Refusal, '_id'>;

const REVERTS: RefusalReason = {
  code: 'wallet_refused',
  message: 'The chain would refuse a transfer to this wallet.',
};

/** @returns why it is refused for good, if it is */
function readPayment(
  { assets, account: { address: from } }: EvmContext,
  { asset, network, amount, wallet_address, livemode }: SettlementInstruction,
): Payment | RefusalReason {
  if (!livemode) {
    return { code: 'sandbox_not_supported', message: 'This chain pays no sandbox settlements.' };
  }
  const served = servedAsset(assets, asset, network);
  if (served === undefined) {
    return { code: 'asset_not_available', message: 'This connector does not pay this asset.' };
  }
  if (!isAddress(wallet_address)) {
    return { code: 'wallet_invalid', message: 'The wallet is no address of this network.' };
  }
  const wallet = getAddress(wallet_address);
  if ([zeroAddress, assets.usdc, from].includes(wallet)) {
    return { code: 'wallet_invalid', message: 'Money that is sent to this wallet would be lost.' };
  }
  return { asset: served, amount, wallet, from };
}

async function refuse(
  deps: EvmContext,
  _id: string,
  refusal: RefusalReason,
): Promise<SettlementAnswer> {
  await refuseUnsigned(deps, { _id, ...refusal });
  const answer = await lookUpSettlement(deps, _id);
  if (answer.outcome === 'not_found') throw new Error('The refusal was not stored.');
  return answer;
}

/** Refuses a settlement for good, unless it is signed. */
async function refuseUnsigned(
  { mongo, nonces, settlements }: EvmContext,
  refusal: Refusal,
): Promise<void> {
  await inTransaction(mongo, async (session) => {
    // Conflicts with a signature: one of the two sees what the other has done.
    await nonces.touch(session);
    if ((await settlements.get(refusal._id, session)) !== null) return;
    await settlements.refuse(refusal, session);
  });
}

const CANCELLED: RefusalReason = {
  code: 'cancelled',
  message: 'The settlement was cancelled before it was signed.',
};

/** Refuses an unsigned settlement, also if it comes later; a signed one is too late. */
export async function cancelSettlement(deps: EvmContext, _id: string): Promise<CancelAnswer> {
  await refuseUnsigned(deps, { _id, ...CANCELLED });
  const isRefused = (await deps.settlements.refusal(_id)) !== null;
  return { outcome: isRefused ? 'cancelled' : 'too_late' };
}

async function signAndStore(
  deps: EvmContext,
  payment: Payment & { _id: string },
  { call, gas, fees }: { call: Call; gas: bigint; fees: Fees },
  assertInTime: () => void,
): Promise<Settlement> {
  const { mongo, account, chainId, nonces, settlements, now } = deps;
  try {
    return await inTransaction(mongo, async (session) => {
      const nonce = await nonces.take(session);
      // Other transactions may have held the nonces for seconds.
      assertInTime();
      if ((await settlements.refusal(payment._id, session)) !== null) {
        throw new Error('The settlement was refused meanwhile: nothing is signed.');
      }
      const attempt = await sign({ account, chainId, call, nonce, gas, fees, now: now() });
      const settlement: Settlement = {
        ...payment,
        nonce,
        gas: String(gas),
        attempts: [attempt],
        broadcast: null,
        mined: null,
        reported: { sent: null, end: null },
        pending_report: null,
        reports: 0,
        last: null,
        is_open: true,
        accepted_at: now(),
      };
      await settlements.add(settlement, session);
      return settlement;
    });
  } catch (error) {
    const other = isDuplicateKey(error) ? await settlements.get(payment._id) : null;
    if (other === null) throw error;
    return other;
  }
}

async function buildAnswer({ settlements }: EvmContext, _id: string): Promise<SettlementAnswer> {
  const settlement = await settlements.get(_id);
  const hash = settlement === null ? undefined : getTransactionHash(settlement);
  if (hash === undefined) return { outcome: 'pending' };
  await settlements.markAnswered(_id, hash);
  return { outcome: 'sent', transaction_id: hash };
}

/** Gas that the balance must cover before a payment is estimated. */
const GAS_HEADROOM = 100_000n;

/** @throws Error if the account cannot cover the amount and what it owes already */
async function checkFunds(
  { node, nonces, settlements, assets, account }: EvmContext,
  { asset, amount }: Pick<Settlement, 'asset' | 'amount'>,
  { fee_max }: Fees,
): Promise<void> {
  await nonces.check();
  const openSettlements = await settlements.waiting(account.address);
  const sum = (of: Asset) =>
    openSettlements
      .filter((row) => row.asset === of)
      .reduce((all, row) => all + BigInt(row.amount), 0n);
  const feeMax = ({ attempts }: Settlement) => BigInt(attempts.at(-1)?.fee_max ?? 0);
  const gas = openSettlements.reduce((all, row) => all + BigInt(row.gas) * feeMax(row), 0n);
  const wei = (asset === 'ETH' ? BigInt(amount) : 0n) + GAS_HEADROOM * fee_max;
  const { address } = account;
  const insufficientBalance = (what: string) =>
    new Error(`The paying account holds too little ${what}.`);
  if ((await node.getBalance(address)) < sum('ETH') + gas + wei) throw insufficientBalance('ether');
  if (asset === 'ETH' || assets.usdc === undefined) return;
  const balance = await node.getTokenBalance(assets.usdc, address);
  if (balance < sum(asset) + BigInt(amount)) throw insufficientBalance(asset);
}

/** The node may have dropped the bytes. */
const REBROADCAST_MS = 60_000;

/**
 * Broadcasts the newest bytes. Safe to repeat.
 * @returns the node's reason for a refusal, such as that a block has the transaction
 */
async function broadcast(
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
