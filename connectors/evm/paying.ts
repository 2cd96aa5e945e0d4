import type { MongoClient } from 'mongodb';
import { type Address, getAddress } from 'viem';
import { inTransaction, isDuplicateKey } from '../../src/base/mongo';
import type { Outdated } from '../contract/activities';
import type { SettlementAnswer, SettlementInstruction, SettlementLookup } from '../contract/crypto';
import { type Asset, servedAsset } from './assets';
import { broadcast } from './broadcasting';
import { assertChain } from './chain-check';
import { affordableFees, checkFunds, type FundsDeps } from './funds';
import type { Call } from './node';
import { NodeFailure } from './node-answers';
import { findRefusal, REVERTS, type RefusalReason } from './refusals';
import { getTransactionHash, type Settlement } from './settlements';
import { buildCall, type Fees, sign } from './signing';
import type { StepHook } from './steps';

export interface PayingDeps extends FundsDeps {
  mongo: MongoClient;
  chainId: number;
  /** Compares an instruction with the product's document. @see connectors/contract/guard.ts */
  findOutdated: (instruction: SettlementInstruction) => Promise<Outdated | undefined>;
  pass: StepHook;
  now: () => Date;
}

/** Gas of a payment to an account without code. */
const PLAIN_GAS = 21_000n;
/** Age to which an attempt may sign: Temporal gives it up at 30 s, which leaves 5 to keep bytes. */
const ATTEMPT_MS_MAX = 25_000;

/**
 * Pays a settlement: signs it, keeps the bytes with their nonce, and only then broadcasts them. A
 * repeat signs nothing.
 * @throws Error when it can't be paid yet, with nothing kept: too little on the account, gas that is
 *   too dear, a node that is away, slow or on another chain; the same instruction may come again
 */
export async function sendSettlement(
  deps: PayingDeps,
  instruction: SettlementInstruction,
): Promise<SettlementAnswer | Outdated> {
  const { crypto_settlement_id: _id } = instruction;
  const assertInTime = timeLimit(deps);
  const existing = await lookUpSettlement(deps, _id);
  if (existing.outcome !== 'not_found') return existing;
  const outdated = await deps.findOutdated(instruction);
  if (outdated !== undefined) return outdated;
  const payer = deps.account.address;
  const refusal = findRefusal({ assets: deps.assets, payer }, instruction);
  if (refusal !== undefined) return await refuse(deps, _id, refusal);
  await assertChain(deps.node, deps.chainId);
  const payment = buildPayment(deps, instruction);
  const call = buildCall(deps.assets, payment);
  const fees = await affordableFees(deps);
  await checkFunds(deps, payment, fees);
  const gas = await deps.node.estimateGas(call);
  // The node may have been slow, and the document have changed meanwhile.
  const outdatedSince = await deps.findOutdated(instruction);
  if (outdatedSince !== undefined) return outdatedSince;
  if (gas === undefined) {
    assertInTime();
    return await refuse(deps, _id, REVERTS);
  }
  const facts = { call, gas: withMargin(gas), fees };
  const settlement = await signAndStore(deps, { ...payment, _id }, facts, assertInTime);
  try {
    await broadcast(deps, settlement);
  } catch (error) {
    // Kept is arrived: the bytes are broadcast later.
    if (!(error instanceof NodeFailure)) throw error;
  }
  return await buildAnswer(deps, _id);
}

/**
 * Begins to count the time of an attempt.
 * @returns a function that throws Error once Temporal may have given the attempt up: another may be
 *   under way by then, or an operator have ended the settlement
 */
function timeLimit({ now }: Pick<PayingDeps, 'now'>): () => void {
  const began = now().getTime();
  return () => {
    if (now().getTime() - began < ATTEMPT_MS_MAX) return;
    throw new Error('The attempt took too long: nothing is signed, and the next one begins anew.');
  };
}

/** Answers what has become of an instruction. */
export async function lookUpSettlement(
  deps: Pick<PayingDeps, 'settlements'>,
  _id: string,
): Promise<SettlementLookup> {
  const refusal = await deps.settlements.refusal(_id);
  if (refusal !== null) {
    return { outcome: 'refused', code: refusal.code, message: refusal.message };
  }
  return (await deps.settlements.get(_id)) === null
    ? { outcome: 'not_found' }
    : await buildAnswer(deps, _id);
}

async function refuse(
  { settlements }: PayingDeps,
  _id: string,
  refusal: RefusalReason,
): Promise<SettlementAnswer> {
  await settlements.refuse({ _id, ...refusal });
  return { outcome: 'refused', ...refusal };
}

interface Payment {
  asset: Asset;
  amount: string;
  wallet: Address;
  from: Address;
}

function buildPayment(
  { assets, account }: PayingDeps,
  { asset, network, amount, wallet_address }: SettlementInstruction,
): Payment {
  const served = servedAsset(assets, asset, network);
  if (served === undefined) throw new Error(`${asset} on ${network} is not served here.`);
  return { asset: served, amount, wallet: getAddress(wallet_address), from: account.address };
}

function withMargin(gas: bigint): bigint {
  return gas === PLAIN_GAS ? gas : (gas * 6n) / 5n;
}

/** Signs and keeps a settlement with its nonce, once; bytes that were not kept are never sent. */
async function signAndStore(
  deps: PayingDeps,
  payment: Payment & { _id: string },
  { call, gas, fees }: { call: Call; gas: bigint; fees: Fees },
  assertInTime: () => void,
): Promise<Settlement> {
  const { mongo, account, chainId, nonces, settlements, pass, now } = deps;
  try {
    const newSettlement = await inTransaction(mongo, async (session) => {
      const nonce = await nonces.take(session);
      // Others may have held the line for seconds.
      assertInTime();
      const attempt = await sign({ account, chainId, call, nonce, gas, fees, now: now() });
      pass('settlement signed');
      const settlement: Settlement = {
        ...payment,
        nonce,
        gas: String(gas),
        attempts: [attempt],
        broadcast: null,
        mined: null,
        told: { sent: null, end: null },
        telling: null,
        reports: 0,
        is_open: true,
        accepted_at: now(),
      };
      await settlements.add(settlement, session);
      return settlement;
    });
    pass('settlement kept');
    return newSettlement;
  } catch (error) {
    const other = isDuplicateKey(error) ? await settlements.get(payment._id) : null;
    if (other === null) throw error;
    return other;
  }
}

/** Names the transaction that the node took last; none while it has taken none. */
async function buildAnswer(
  { settlements }: Pick<PayingDeps, 'settlements'>,
  _id: string,
): Promise<SettlementAnswer> {
  const settlement = await settlements.get(_id);
  const hash = settlement === null ? undefined : getTransactionHash(settlement);
  if (hash === undefined) return { outcome: 'pending' };
  await settlements.markAnswered(_id, hash);
  return { outcome: 'sent', transaction_id: hash };
}
