import type { MongoClient } from 'mongodb';
import { abandon, inTransaction } from '../../src/base/mongo';
import { type BlockFacts, type ReaderDeps, readFacts } from './block-facts';
import type { BlockRef, ChainBook } from './chain-store';
import type { Deposits } from './deposits';
import type { Block } from './node';
import { NodeFailure } from './node-answers';
import type { Settlements } from './settlements';
import type { StepHook } from './steps';

/** Blocks that are asked for at once, while the chain is ahead. */
const BATCH = 8;
/** Blocks before the head at which a first start begins, so that a reorganisation finds its root. */
const BEFORE_HEAD = 128;

export interface FollowerDeps extends ReaderDeps {
  mongo: MongoClient;
  book: ChainBook;
  deposits: Deposits;
  settlements: Settlements;
  /** Told of deposits in an asset that was not asked for. */
  onWrongAsset: (deposit: BlockFacts['deposits'][number]) => void;
  pass: StepHook;
}

/** Reorganisation that goes deeper than the blocks that are remembered: nothing more is followed. */
class DeepReorganisation extends Error {
  override readonly name = 'DeepReorganisation';
}

/** Sets the cursor before the first round: at `startBlock`, or a little before the head. */
export async function beginFollowing(
  { node, book }: Pick<FollowerDeps, 'node' | 'book'>,
  startBlock: number | undefined,
): Promise<void> {
  if ((await book.cursor()) !== null) return;
  const head = Number(await node.head());
  const number = startBlock ?? Math.max(0, head - BEFORE_HEAD);
  const block = await node.block(BigInt(number));
  if (block === undefined) throw new Error(`The chain has no block ${number} to start from.`);
  await book.begin(toBlockRef(block));
}

/**
 * Follows the chain for one round: leaves a branch that the node has left, then takes the next blocks
 * in, each in one transaction with the cursor.
 * @returns whether there may be more at once
 * @throws NodeFailure where the node can't be asked; DeepReorganisation
 */
export async function follow(deps: FollowerDeps): Promise<boolean> {
  const at = await deps.book.cursor();
  if (at === null) throw new Error('The chain has no cursor: follow it from somewhere first.');
  const head = Number(await deps.node.head());
  if (head <= at.number) {
    if (await isOnBranch(deps, head)) return false;
    await leaveBranch(deps, at, head);
    return true;
  }
  const numbers = Array.from({ length: Math.min(BATCH, head - at.number) }, (_, i) => i);
  const blocks = await Promise.all(numbers.map((i) => deps.node.block(BigInt(at.number + 1 + i))));
  let from: BlockRef = at;
  for (const block of blocks) {
    // A node behind a balancer may not have what another one told of.
    if (block === undefined) return false;
    if (block.parentHash !== from.hash) {
      await leaveBranch(deps, from, head);
      return true;
    }
    if (!(await applyBlock(deps, from, block))) return true;
    from = toBlockRef(block);
  }
  return from.number < head;
}

/** Whether the node's newest block is one that we have followed; so is one that we have forgotten. */
async function isOnBranch({ node, book }: FollowerDeps, head: number): Promise<boolean> {
  const storedHash = await book.hashAt(head);
  const nodeBlock = storedHash === undefined ? undefined : await node.block(BigInt(head));
  return nodeBlock === undefined || nodeBlock.hash === storedHash;
}

/** Takes a block in; false where another process was faster. */
async function applyBlock(deps: FollowerDeps, from: BlockRef, block: Block): Promise<boolean> {
  const facts = await readFacts(deps, block);
  const blockRef = toBlockRef(block);
  const minedAt = new Date(Number(block.timestamp) * 1_000);
  deps.pass('block read');
  const isApplied = await inTransaction(deps.mongo, async (session) => {
    if (!(await deps.book.add(from, blockRef, session))) return await abandon(session);
    await deps.deposits.store(facts.deposits, blockRef, minedAt, session);
    await deps.settlements.mine(facts.outgoing, blockRef, session);
    return true;
  });
  deps.pass('block kept');
  for (const deposit of facts.deposits) if (deposit.is_stray) deps.onWrongAsset(deposit);
  return isApplied === true;
}

/** Goes back to where the node's branch parts from the followed one, and undoes what lay above. */
async function leaveBranch(deps: FollowerDeps, from: BlockRef, head: number): Promise<void> {
  const root = await findCommonBlock(deps, from.number, head);
  if (root === undefined) {
    throw new DeepReorganisation(
      `The chain was reorganised below every block that is remembered, from ${from.number} down.`,
    );
  }
  await inTransaction(deps.mongo, async (session) => {
    if (!(await deps.book.leave(from, root, session))) return await abandon(session);
    await deps.deposits.revertAbove(root.number, session);
    await deps.settlements.revertAbove(root.number, session);
    return true;
  });
  deps.pass('branch left');
}

/** @throws NodeFailure where a node lacks a block: it may lag, and no branch is left for that */
async function findCommonBlock(
  { node, book }: FollowerDeps,
  below: number,
  head: number,
): Promise<BlockRef | undefined> {
  for await (const { _id: number, hash } of book.blocksBelow(below)) {
    const nodeBlock = await node.block(BigInt(number));
    if (nodeBlock?.hash === hash) return { number, hash };
    if (nodeBlock === undefined && number <= head) {
      throw new NodeFailure('The node lacks a block below its newest.');
    }
  }
  return undefined;
}

function toBlockRef({ number, hash }: Block): BlockRef {
  return { number: Number(number), hash };
}
