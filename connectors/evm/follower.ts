import { abandon, inTransaction } from '../../src/base/mongo';
import { readDeposits, readOutgoing } from './block-facts';
import type { BlockRef, DatedBlock } from './chain-store';
import type { EvmContext } from './context';
import { type Block, NodeFailure } from './node';

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
