import type { BalanceRow, Receivable } from '../../ledger/book';
import type { Owner, ServiceDeps } from '../deps';

export type { BalanceRow, Receivable } from '../../ledger/book';

export async function readBalances(
  { stores }: Pick<ServiceDeps, 'stores'>,
  { account_id, livemode }: Owner,
): Promise<{ balances: BalanceRow[]; receivables: Receivable[] }> {
  const [balances, receivables] = await Promise.all([
    stores.ledger.balances(account_id, livemode),
    stores.ledger.receivables(account_id, livemode),
  ]);
  return { balances, receivables };
}
