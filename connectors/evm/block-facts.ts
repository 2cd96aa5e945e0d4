import { type Address, getAddress, type Hash } from 'viem';
import type { PaymentAddress } from './addresses';
import type { Asset } from './assets';
import type { EvmContext } from './context';
import { type BlockDeposit, depositId } from './deposits';
import { type Block, type EvmNode, mayTransfer, NodeFailure, type Receipt } from './node';
import type { Outgoing } from './settlements';
import type { Movement } from './traces';

interface Transfer {
  asset: Asset;
  hash: Hash;
  to: Address;
  value: bigint;
  sources: Address[];
}

/** @throws NodeFailure if the node does not know the whole block yet */
export async function readDeposits(deps: EvmContext, block: Block): Promise<BlockDeposit[]> {
  const { node, traces } = deps;
  // Without traces, ether that contracts move is not seen.
  const plain = block.transactions.flatMap(({ to, ...each }) =>
    to === null ? [] : [{ ...each, to }],
  );
  const ether = traces ? await node.movements(block) : plain;
  const tokens = await readTokens(deps, block);
  const transfers = [...toTransfers('ETH', block, ether), ...toTransfers('USDC', block, tokens)];
  const rows = await deps.addresses.among([...new Set(transfers.map(({ to }) => to))]);
  const byAddress = new Map(rows.map((row) => [row.address, row]));
  const deposits = new Map<string, BlockDeposit>();
  for (const transfer of transfers) {
    const row = byAddress.get(transfer.to);
    if (row === undefined) continue;
    // A log proves that money moved; a transaction needs its receipt.
    if (transfer.asset === 'ETH' && !(await readReceipt(node, transfer.hash)).succeeded) continue;
    const { asset, hash: transaction_id, value } = transfer;
    const facts = { crypto_payment_id: row._id, asset, transaction_id };
    const { amount = 0n, sources = [] } = deposits.get(depositId(facts)) ?? {};
    deposits.set(depositId(facts), {
      ...facts,
      amount: amount + value,
      sources: [...new Set([...sources, ...transfer.sources])],
      required_confirmations: row.required_confirmations,
      is_wrong_asset: asset !== row.asset,
      is_dust: false,
    });
  }
  for (const deposit of deposits.values()) {
    if (deposit.amount >= deps.least[deposit.asset]) continue;
    const row = rows.find(({ _id }) => _id === deposit.crypto_payment_id);
    const others = [...deposits.values()].filter((each) => each !== deposit);
    deposit.is_dust = row === undefined || !(await completes(deps, block, row, deposit, others));
  }
  return [...deposits.values()];
}

async function completes(
  { deposits }: EvmContext,
  { number }: Block,
  { amount_due }: PaymentAddress,
  { crypto_payment_id, asset, amount, is_wrong_asset }: BlockDeposit,
  others: readonly BlockDeposit[],
): Promise<boolean> {
  if (is_wrong_asset) return false;
  const known = await deposits.sums(crypto_payment_id, Number(number) - 1, 'without dust');
  const sum = others
    .filter((each) => each.crypto_payment_id === crypto_payment_id && each.asset === asset)
    .reduce((all, each) => all + each.amount, known[asset] + amount);
  return sum >= BigInt(amount_due);
}

/**
 * A node may have a block before its logs: where the block's bloom allows a transfer, "none" is
 * believed only if all logs have that bloom.
 * @throws NodeFailure if no node has the logs
 */
async function readTokens(
  { node, secondNode, assets: { usdc }, log }: EvmContext,
  block: Block,
): Promise<Movement[]> {
  if (usdc === undefined) return [];
  const transfers = await node.transfers(usdc, block.hash);
  if (transfers.length > 0 || !mayTransfer(block, usdc)) return transfers;
  log.warn({}, `block ${block.number} may have transfers, and the node has none`);
  const proven =
    (await node.provenTransfers(usdc, block)) ?? (await secondNode?.provenTransfers(usdc, block));
  if (proven !== undefined) return proven;
  throw new NodeFailure('The node has a block without its logs.');
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

async function readReceipt(node: EvmNode, hash: Hash): Promise<Receipt> {
  const receipt = await node.receipt(hash);
  if (receipt === undefined) throw new NodeFailure('The node has a block without its receipts.');
  return receipt;
}

/** Transactions of the paying account. @throws NodeFailure as `readDeposits` */
export async function readOutgoing(
  { node, payer }: EvmContext,
  { transactions }: Block,
): Promise<Outgoing[]> {
  const outgoing: Outgoing[] = [];
  for (const { hash, from, nonce } of transactions) {
    if (getAddress(from) !== payer) continue;
    outgoing.push({ from: payer, nonce, hash, ...(await readReceipt(node, hash)) });
  }
  return outgoing;
}
