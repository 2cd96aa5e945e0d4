import { MAIN_BALANCE } from '../../../domain/account/balance-account';
import { ASSETS, bookCurrency } from '../../../domain/crypto/assets';
import { Refusal } from '../../../domain/errors';
import type { BalanceTransactionQuery } from '../../../domain/wire/balances';
import type { BalanceTransactionDocument } from '../../../store/balance-transactions';
import type { Owner, ServiceDeps } from '../../deps';
import { listPage, type Page } from '../read';

type ListDeps = Pick<ServiceDeps, 'stores'>;

/**
 * Lists changes of available balances, newest first.
 * @throws Refusal 400 for a balance account that never had funds
 * @see docs/api.md#balances
 */
export async function listBalanceTransactions(
  { stores }: ListDeps,
  caller: Owner,
  { asset, currency, ...query }: BalanceTransactionQuery,
): Promise<Page<BalanceTransactionDocument>> {
  if (query.balance_account !== undefined) {
    await assertBalanceAccount({ stores }, caller, query.balance_account);
  }
  const pair = ASSETS.find((rules) => rules.asset === asset);
  // No balance is both in a currency and in an asset.
  if (pair !== undefined && currency !== undefined) {
    return { rows: [], has_more: false, next_cursor: null };
  }
  const book = pair === undefined ? currency : bookCurrency(pair);
  return await listPage(stores.balanceTransactions, caller, query, { currency: book });
}

async function assertBalanceAccount(
  { stores }: ListDeps,
  { account_id, livemode }: Owner,
  name: string,
): Promise<void> {
  if (name === MAIN_BALANCE) return;
  if (await stores.balanceTransactions.hasBalanceAccount(account_id, livemode, name)) return;
  const message = 'must be a balance account that had funds';
  const details = [{ code: 'invalid', field: 'balance_account', message }];
  throw new Refusal('invalid_request', `balance_account: ${message}`, { details });
}
