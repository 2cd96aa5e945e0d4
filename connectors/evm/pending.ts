import { type Address, decodeFunctionData, erc20Abi, getAddress } from 'viem';
import type { Asset } from './assets';
import type { EvmContext } from './context';
import type { Deposit, Unmined } from './deposits';
import type { PendingTransaction } from './node';

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
  const { addresses, deposits, now, log } = deps;
  try {
    const unmined = await deposits.listUnmined();
    const isAwaited = await addresses.isAnyAwaited(now());
    const transactions = isAwaited ? await listPending(deps, cursor) : [];
    for (const deposit of unmined) {
      const { transaction_id } = deposit;
      const isPending =
        transactions.some(({ hash }) => hash === transaction_id) ||
        (await mayBeMined(deps, transaction_id, cursor));
      const change = deposit.unmined && findChange(deposit.unmined, isPending, now());
      if (change !== undefined) await deposits.setUnmined(deposit, change);
    }
    await seeNew(deps, transactions, unmined);
  } catch (err) {
    log.warn({ err }, 'transactions that no block has were not compared, tried again later');
  }
}

/** Lists none where the node fails: what was seen ends all the same. */
async function listPending({ node, log }: EvmContext, cursor: number) {
  const transactions = await node.pending(cursor).catch((err: unknown) => {
    log.warn({ err }, 'pending transactions could not be read, tried again later');
    return undefined;
  });
  return transactions ?? [];
}

/** False too if a block that is followed has it: it brought nothing there. */
async function mayBeMined({ node }: EvmContext, hash: `0x${string}`, cursor: number) {
  const block = await node.findBlockOf(hash);
  return block !== undefined && (block === null || block > cursor);
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
    if (functionName !== 'transfer') return undefined;
    return { ...transaction, asset: 'USDC', to: getAddress(args[0]), amount: args[1] };
  } catch {
    // Another function of the contract.
    return undefined;
  }
}
