import type { MongoClient } from 'mongodb';
import { type Address, getAddress } from 'viem';
import type { PrivateKeyAccount } from 'viem/accounts';
import { inTransaction, isDuplicateKey } from '../../src/mongo';
import type { SettlementAnswer, SettlementInstruction, SettlementLookup } from '../contract/crypto';
import { type Asset, type Assets, servedAsset } from './assets';
import { broadcast } from './broadcasting';
import { assertChain } from './chain-check';
import type { Call, EvmNode } from './node';
import { NodeFailure } from './node-answers';
import type { NonceLine } from './nonce-line';
import { REVERTS, type Refused, refusalOf } from './refusals';
import { type Settlement, type Settlements, transactionOf } from './settlements';
import { callOf, type Fees, firstFees, sign } from './signing';
import type { Passing } from './steps';

export interface PayingDeps {
  mongo: MongoClient;
  node: EvmNode;
  assets: Assets;
  chainId: number;
  account: PrivateKeyAccount;
  nonces: NonceLine;
  settlements: Settlements;
  /** Most wei a unit of gas. */
  feeCap: bigint;
  /** Holds an instruction against the product's record. */
  assertCurrent: (instruction: SettlementInstruction) => Promise<void>;
  pass: Passing;
  now: () => Date;
}

/** Gas of a payment to an account without code. */
const PLAIN_GAS = 21_000n;
/** Gas that there must be funds for, before a payment is tried out. */
const GAS_HEADROOM = 100_000n;

/**
 * Pays a settlement: signs it, keeps the bytes with their nonce, and only then broadcasts them. A
 * repeat signs nothing.
 * @throws Error when it can't be paid yet, with nothing kept: too little on the account, gas that is
 *   too dear, a node that is away or on another chain; the same instruction may come again
 */
export async function sendSettlement(
  deps: PayingDeps,
  instruction: SettlementInstruction,
): Promise<SettlementAnswer> {
  const { crypto_settlement_id: _id } = instruction;
  const known = await lookUpSettlement(deps, _id);
  if (known.outcome !== 'not_found') return known;
  await deps.assertCurrent(instruction);
  const payer = deps.account.address;
  const refusal = refusalOf({ assets: deps.assets, payer }, instruction);
  if (refusal !== undefined) return await refuse(deps, _id, refusal);
  await assertChain(deps.node, deps.chainId);
  const payment = paymentOf(deps, instruction);
  const call = callOf(deps.assets, payment);
  const fees = await affordableFees(deps);
  await checkFunds(deps, payment, fees);
  const gas = await deps.node.gasOf(call);
  if (gas === undefined) return await refuse(deps, _id, REVERTS);
  const settlement = await keep(deps, { ...payment, _id }, call, withMargin(gas), fees);
  try {
    await broadcast(deps, settlement);
  } catch (error) {
    // Kept is arrived: the bytes are broadcast later.
    if (!(error instanceof NodeFailure)) throw error;
  }
  return await answerOf(deps, _id);
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
    : await answerOf(deps, _id);
}

async function refuse(
  { settlements }: PayingDeps,
  _id: string,
  refused: Refused,
): Promise<SettlementAnswer> {
  await settlements.refuse({ _id, ...refused });
  return { outcome: 'refused', ...refused };
}

interface Payment {
  asset: Asset;
  amount: string;
  wallet: Address;
  from: Address;
}

function paymentOf(
  { assets, account }: PayingDeps,
  { asset, network, amount, wallet_address }: SettlementInstruction,
): Payment {
  const served = servedAsset(assets, asset, network);
  if (served === undefined) throw new Error(`${asset} on ${network} is not served here.`);
  return { asset: served, amount, wallet: getAddress(wallet_address), from: account.address };
}

async function affordableFees({ node, feeCap }: PayingDeps): Promise<Fees> {
  const fees = firstFees(await node.fees(), feeCap);
  if (fees === undefined) throw new Error('Gas is dearer than this connector may pay.');
  return fees;
}

/** @throws Error when the account does not hold the amount beside what it owes already. */
async function checkFunds(
  { node, nonces, settlements, assets, account }: PayingDeps,
  { asset, amount }: Payment,
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

function withMargin(gas: bigint): bigint {
  return gas === PLAIN_GAS ? gas : (gas * 6n) / 5n;
}

/** Signs and keeps a settlement with its nonce, once; bytes that were not kept are never sent. */
async function keep(
  deps: PayingDeps,
  payment: Payment & { _id: string },
  call: Call,
  gas: bigint,
  fees: Fees,
): Promise<Settlement> {
  const { mongo, account, chainId, nonces, settlements, pass, now } = deps;
  try {
    const kept = await inTransaction(mongo, async (session) => {
      const nonce = await nonces.take(session);
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
    return kept;
  } catch (error) {
    const other = isDuplicateKey(error) ? await settlements.get(payment._id) : null;
    if (other === null) throw error;
    return other;
  }
}

/** Names the transaction that the node took last; none while it has taken none. */
async function answerOf(
  { settlements }: Pick<PayingDeps, 'settlements'>,
  _id: string,
): Promise<SettlementAnswer> {
  const settlement = await settlements.get(_id);
  const hash = settlement === null ? undefined : transactionOf(settlement);
  if (hash === undefined) return { outcome: 'pending' };
  await settlements.noteAnswered(_id, hash);
  return { outcome: 'sent', transaction_id: hash };
}
