import { type Address, getAddress, type Hash } from 'viem';
import type { Addresses, PaymentAddress } from './addresses';
import type { Asset, Assets } from './assets';
import type { BlockDeposit } from './deposits';
import type { Block, EvmNode } from './node';
import { NodeFailure } from './node-answers';
import type { Outgoing } from './settlements';
import type { Movement } from './traces';

export interface ReaderDeps {
  node: EvmNode;
  addresses: Pick<Addresses, 'among'>;
  assets: Assets;
  traces: boolean;
  payer: Address;
}

interface Transfer {
  asset: Asset;
  hash: Hash;
  to: Address;
  value: bigint;
  sources: Address[];
}

/** @throws NodeFailure if the node does not know the whole block yet */
export async function readFacts(deps: ReaderDeps, block: Block) {
  const { node, traces, assets } = deps;
  const ether = traces ? await node.movements(block) : getPlainMovements(block);
  const tokens = assets.usdc === undefined ? [] : await node.transfers(assets.usdc, block.hash);
  const transfers = [...toTransfers('ETH', block, ether), ...toTransfers('USDC', block, tokens)];
  const rows = await deps.addresses.among([...new Set(transfers.map(({ to }) => to))]);
  const byAddress = new Map(rows.map((row) => [row.address, row]));
  const deposits = new Map<string, BlockDeposit>();
  for (const transfer of transfers) {
    const row = byAddress.get(transfer.to);
    if (row === undefined) continue;
    // A log proves that money moved; a transaction needs its receipt.
    if (transfer.asset === 'ETH' && !(await hasSucceeded(node, transfer.hash))) continue;
    const key = `${row._id}:${transfer.asset}:${transfer.hash}`;
    deposits.set(key, addTransfer(deposits.get(key), row, transfer));
  }
  return { deposits: [...deposits.values()], outgoing: await readOutgoing(deps, block) };
}

/** Ether that transactions move, without what contracts move. */
function getPlainMovements({ transactions }: Block): Movement[] {
  return transactions.flatMap(({ hash, from, to, value }) =>
    to === null ? [] : [{ hash, from, to, value }],
  );
}

function toTransfers(
  asset: Asset,
  { transactions }: Block,
  movements: readonly Movement[],
): Transfer[] {
  const senders = new Map(transactions.map(({ hash, from }) => [hash, getAddress(from)]));
  return movements.flatMap(({ hash, from, to, value }) => {
    if (value === 0n) return [];
    const sender = senders.get(hash);
    if (sender === undefined) throw new NodeFailure('The node answered about another block.');
    const sources = [...new Set([getAddress(from), sender])];
    return [{ asset, hash, to: getAddress(to), value, sources }];
  });
}

async function hasSucceeded(node: EvmNode, hash: Hash): Promise<boolean> {
  const succeeded = await node.succeeded(hash);
  if (succeeded === undefined) throw new NodeFailure('The node has a block without its receipts.');
  return succeeded;
}

function addTransfer(
  earlier: BlockDeposit | undefined,
  { _id, asset: requestedAsset, required_confirmations }: PaymentAddress,
  { asset, hash, value, sources }: Transfer,
): BlockDeposit {
  return {
    crypto_payment_id: _id,
    asset,
    transaction_id: hash,
    amount: (earlier?.amount ?? 0n) + value,
    sources: [...new Set([...(earlier?.sources ?? []), ...sources])],
    is_stray: asset !== requestedAsset,
    required_confirmations,
  };
}

async function readOutgoing(
  { node, payer }: ReaderDeps,
  { transactions }: Block,
): Promise<Outgoing[]> {
  const outgoing: Outgoing[] = [];
  for (const { hash, from, nonce } of transactions) {
    if (getAddress(from) !== payer) continue;
    outgoing.push({ from: payer, nonce, hash, succeeded: await hasSucceeded(node, hash) });
  }
  return outgoing;
}
