import type { Logger } from '../../src/base/log';
import { formatUnits } from '../../src/domain/crypto/assets';
import type { Addresses, PaymentAddress } from './addresses';
import { type Asset, type Assets, NETWORK } from './assets';
import type { ChainBook, DatedBlock } from './chain-store';
import type { Deposits } from './deposits';
import type { Findings } from './findings';
import type { EvmNode } from './node';

/** Second comparison, for deposits that came late. */
const AGAIN_MS = 6 * 3_600_000;
const BATCH = 25;

export interface BalanceCheckDeps {
  node: Pick<EvmNode, 'getBalance' | 'getTokenBalance' | 'block'>;
  book: Pick<ChainBook, 'cursor'>;
  addresses: Pick<Addresses, 'dueForCheck' | 'checkAgain'>;
  deposits: Pick<Deposits, 'sums'>;
  assets: Assets;
  findings: Findings;
  log: Pick<Logger, 'warn'>;
}

/**
 * Compares balances with known deposits: when a payment's window closes, and hours later. A lower
 * balance was transferred by the owner; a higher one has funds that no block showed.
 */
export async function checkBalances(deps: BalanceCheckDeps): Promise<void> {
  const { book, addresses, node, log } = deps;
  const cursor = await book.cursor();
  const at = cursor?.mined_at;
  if (cursor === null || at === undefined) return;
  const due = await addresses.dueForCheck(at, BATCH);
  if (due.length === 0) return;
  try {
    for (const address of due) {
      const findings = await compare(deps, address, cursor.number);
      // The balances are of the followed branch only if the node still has its block.
      if ((await node.block(BigInt(cursor.number)))?.hash !== cursor.hash) return;
      for (const finding of findings) await deps.findings.record(finding);
      await addresses.checkAgain(address, AGAIN_MS);
    }
  } catch (err) {
    log.warn({ err }, 'balances of addresses could not be compared, tried again later');
  }
}

async function compare(
  { node, assets: { usdc }, deposits }: BalanceCheckDeps,
  { _id, address }: PaymentAddress,
  number: DatedBlock['number'],
) {
  const known = await deposits.sums(_id, number, 'with dust');
  const at = BigInt(number);
  const balances: [Asset, bigint][] = [['ETH', await node.getBalance(address, at)]];
  if (usdc !== undefined) balances.push(['USDC', await node.getTokenBalance(usdc, address, at)]);
  return balances.flatMap(([asset, balance]) => {
    const excess = balance - known[asset];
    if (excess <= 0n) return [];
    const amount = formatUnits(excess, { asset, network: NETWORK });
    return {
      name: 'unexplained_balance' as const,
      subject: `${_id}:${asset}`,
      crypto_payment_id: _id,
      text: `The address ${address} has ${amount} that no known deposit explains.`,
    };
  });
}
