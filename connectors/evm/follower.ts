import { type Address, decodeFunctionData, erc20Abi, getAddress } from 'viem';
import { abandon, inTransaction } from '../../src/base/mongo';
import { UNITS } from '../../src/domain/crypto/assets';
import type { Asset } from './assets';
import { readDeposits, readOutgoing } from './block-facts';
import type { BlockRef, DatedBlock } from './chain-store';
import type { EvmContext } from './context';
import type { Deposit, Unmined } from './deposits';
import { type Block, NodeFailure, type PendingTransaction } from './node';

const BATCH = 8;
/** Blocks before the newest at which a first start begins, to contain a reorganization. */
const BEFORE_HEAD = 128;

/** Reorganization longer than the stored blocks; following stops. */
class LongReorganization extends Error {
  override readonly name = 'LongReorganization';
}

export async function beginFollowing({ node, book, startBlock }: EvmContext): Promise<void> {
  if ((await book.cursor()) !== null) return;
  const head = Number(await node.head());
  const number = startBlock ?? Math.max(0, head - BEFORE_HEAD);
  const block = await node.block(BigInt(number));
  if (block === undefined) throw new Error(`The chain has no block ${number} to start from.`);
  await book.begin(toDatedBlock(block));
}

/**
 * Leaves a branch that the node has left, then adds the next blocks, each in one transaction with
 * the cursor.
 * @returns whether more may be due at once
 * @throws NodeFailure; LongReorganization
 */
export async function follow(deps: EvmContext): Promise<boolean> {
  const at = await deps.book.cursor();
  if (at === null) throw new Error('The chain has no cursor: follow it from somewhere first.');
  const head = Number(await deps.node.head());
  if (head <= at.number) {
    const storedHash = await deps.book.hashAt(head);
    const nodeBlock = storedHash === undefined ? undefined : await deps.node.block(BigInt(head));
    if (nodeBlock === undefined || nodeBlock.hash === storedHash) return false;
    await leaveBranch(deps, at, head);
    return true;
  }
  const numbers = Array.from({ length: Math.min(BATCH, head - at.number) }, (_, i) => i);
  const blocks = await Promise.all(numbers.map((i) => deps.node.block(BigInt(at.number + 1 + i))));
  let from: BlockRef = at;
  for (const block of blocks) {
    // Behind a load balancer, one node may lack what another reported.
    if (block === undefined) return false;
    if (block.parentHash !== from.hash) {
      await leaveBranch(deps, from, head);
      return true;
    }
    if (!(await applyBlock(deps, from, block))) return true;
    from = toDatedBlock(block);
  }
  return from.number < head;
}

/** @returns false if another process was faster */
async function applyBlock(deps: EvmContext, from: BlockRef, block: Block): Promise<boolean> {
  const deposits = await readDeposits(deps, block);
  const outgoing = await readOutgoing(deps, block);
  const datedBlock = toDatedBlock(block);
  const isApplied = await inTransaction(deps.mongo, async (session) => {
    if (!(await deps.book.add(from, datedBlock, session))) return await abandon(session);
    await deps.deposits.store(deposits, datedBlock, session);
    await deps.settlements.mine(outgoing, datedBlock, session);
    return true;
  });
  for (const { crypto_payment_id, asset, transaction_id, is_wrong_asset } of deposits) {
    if (!is_wrong_asset) continue;
    const about = { crypto_payment_id, transaction_id, code: asset };
    deps.log.error(about, 'money in another asset came to the address of a payment');
  }
  return isApplied === true;
}

async function leaveBranch(deps: EvmContext, from: BlockRef, head: number): Promise<void> {
  const root = await findCommonBlock(deps, from.number, head);
  if (root === undefined) {
    throw new LongReorganization(
      `The chain was reorganised below every block that is remembered, from ${from.number} down.`,
    );
  }
  await inTransaction(deps.mongo, async (session) => {
    if (!(await deps.book.leave(from, root, session))) return await abandon(session);
    await deps.deposits.revertAbove(root.number, session);
    await deps.settlements.revertAbove(root.number, session);
    return true;
  });
}

/** @throws NodeFailure if the node lacks a block: it may lag, so no branch is left */
async function findCommonBlock(
  { node, book }: EvmContext,
  below: number,
  head: number,
): Promise<DatedBlock | undefined> {
  for await (const { _id: number, hash } of book.blocksBelow(below)) {
    const nodeBlock = await node.block(BigInt(number));
    if (nodeBlock?.hash === hash) return toDatedBlock(nodeBlock);
    if (nodeBlock === undefined && number <= head) {
      throw new NodeFailure('The node lacks a block below its newest.');
    }
  }
  return undefined;
}

function toDatedBlock({ number, hash, timestamp }: Block): DatedBlock {
  return { number: Number(number), hash, mined_at: new Date(Number(timestamp) * 1_000) };
}

/** Time after the end of the window in which a block must have what was seen before it. */
const AFTER_END_MS = 3_600_000;
/** Behind a load balancer, one node may lack what another has. */
const MISSING_MS = 60_000;
/** Bound for each payment, since what is never mined costs its sender nothing. */
const UNMINED_MAX = 10;

/**
 * Stores deposits that no block has yet, since the payer decides when to send, and not when a block
 * takes it. They keep their payment open and are never credited; each ends when a block has it,
 * when the node has lost it, or an hour after the window.
 */
export async function watchPending(deps: EvmContext, cursor: number): Promise<void> {
  const { node, addresses, deposits, now, log } = deps;
  try {
    const unmined = await deposits.listUnmined();
    const isAwaited = await addresses.isAnyAwaited(now());
    // None where the node fails: what was seen ends all the same.
    const pending = isAwaited
      ? await node.pending(cursor).catch((err: unknown) => {
          log.warn({ err }, 'pending transactions could not be read, tried again later');
          return undefined;
        })
      : undefined;
    const transactions = pending ?? [];
    for (const deposit of unmined) {
      const { transaction_id } = deposit;
      let isPending = transactions.some(({ hash }) => hash === transaction_id);
      if (!isPending) {
        // A transaction in a block up to the cursor brought nothing, so it is not pending.
        const block = await node.findBlockOf(transaction_id);
        isPending = block !== undefined && (block === null || block > cursor);
      }
      const change = deposit.unmined && findChange(deposit.unmined, isPending, now());
      if (change !== undefined) await deposits.setUnmined(deposit, change);
    }
    await seeNew(deps, transactions, unmined);
  } catch (err) {
    log.warn({ err }, 'transactions that no block has were not compared, tried again later');
  }
}

function findChange(
  { missing_since, until }: Unmined,
  isPending: boolean,
  now: Date,
): Partial<Unmined> | undefined {
  if (now >= until) return { is_withdrawn: true };
  if (isPending) return missing_since === null ? undefined : { missing_since: null };
  if (missing_since === null) return { missing_since: now };
  const isLost = now.getTime() - missing_since.getTime() >= MISSING_MS;
  return isLost ? { is_withdrawn: true } : undefined;
}

async function seeNew(
  { addresses, deposits, assets, least, now }: EvmContext,
  transactions: readonly PendingTransaction[],
  unmined: readonly Deposit[],
): Promise<void> {
  const at = now();
  const seen: Pick<Deposit, 'crypto_payment_id' | 'transaction_id'>[] = [...unmined];
  const transfers = transactions.flatMap((each) => readTransfer(each, assets.usdc) ?? []);
  const rows = await addresses.among([...new Set(transfers.map(({ to }) => to))]);
  for (const { asset, to, amount, from, hash: transaction_id } of transfers) {
    const row = rows.find((each) => each.address === to && each.asset === asset);
    if (row?.check_at == null || row.checks > 0 || row.check_at <= at) continue;
    const { _id: crypto_payment_id, required_confirmations } = row;
    const others = seen.filter((each) => each.crypto_payment_id === crypto_payment_id);
    const isKnown = others.some((each) => each.transaction_id === transaction_id);
    if (isKnown || amount < least[asset] || others.length >= UNMINED_MAX) continue;
    seen.push({ crypto_payment_id, transaction_id });
    const facts = { crypto_payment_id, asset, transaction_id, amount, required_confirmations };
    const until = new Date(row.check_at.getTime() + AFTER_END_MS);
    const flags = { is_wrong_asset: false, is_dust: false };
    await deposits.see({ ...facts, sources: [getAddress(from)], ...flags }, at, until);
  }
}

interface PendingTransfer extends PendingTransaction {
  asset: Asset;
  to: Address;
  amount: bigint;
}

/** Excludes what contracts send on: only a block shows it. */
function readTransfer(
  transaction: PendingTransaction,
  usdc: Address | undefined,
): PendingTransfer | undefined {
  const { to, value, input } = transaction;
  if (to === null) return undefined;
  if (value > 0n) return { ...transaction, asset: 'ETH', to: getAddress(to), amount: value };
  if (usdc === undefined || getAddress(to) !== usdc) return undefined;
  try {
    const { functionName, args } = decodeFunctionData({ abi: erc20Abi, data: input });
    // A transfer of more than its sender has, which fails, may name any amount.
    if (functionName !== 'transfer' || !UNITS.test(String(args[1]))) return undefined;
    return { ...transaction, asset: 'USDC', to: getAddress(args[0]), amount: args[1] };
  } catch {
    // Another function of the contract.
    return undefined;
  }
}
