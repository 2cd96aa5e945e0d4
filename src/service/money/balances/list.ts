import { deriveUuid } from '../../../base/ids';
import { NumberLiteral } from '../../../base/json';
import { MAIN_BALANCE } from '../../../domain/account/balance-account';
import { ASSETS, bookCurrency, parseBookCurrency } from '../../../domain/crypto/assets';
import { readPositionTime } from '../../../domain/cursor';
import { Refusal } from '../../../domain/errors';
import type { BalanceTransactionQuery } from '../../../domain/wire/balances';
import { findSource, readChange, readDueDay } from '../../../ledger/balance-changes';
import type { BalanceRow, Receivable } from '../../../ledger/balance-rows';
import type { BalanceTransactionDocument } from '../../../store/balance-transactions';
import type { Owner, ServiceDeps } from '../../deps';
import { listPage, type Page, type ProvedBalance } from '../read';

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
  const { balance_account: name = MAIN_BALANCE } = query;
  const { balanceTransactions } = stores;
  const { account_id, livemode } = caller;
  const isMain = name === MAIN_BALANCE;
  if (!isMain && !(await balanceTransactions.hasBalanceAccount(account_id, livemode, name))) {
    const message = 'must be a balance account that had funds';
    const details = [{ code: 'invalid', field: 'balance_account', message }];
    throw new Refusal('invalid_request', `balance_account: ${message}`, { details });
  }
  const pair = ASSETS.find((rules) => rules.asset === asset);
  // No balance is both in a currency and in an asset.
  if (pair !== undefined && currency !== undefined) {
    return { rows: [], has_more: false, next_cursor: null };
  }
  const book = pair === undefined ? currency : bookCurrency(pair);
  return await listPage(balanceTransactions, caller, query, { currency: book });
}

/** Assets come last. @see docs/api.md#balances */
export function presentBalances({
  balances,
  receivables,
}: {
  balances: readonly ProvedBalance[];
  receivables: readonly Receivable[];
}) {
  const isAsset = ({ currency }: BalanceRow) => parseBookCurrency(currency) !== undefined;
  const rows = [...balances.filter((row) => !isAsset(row)), ...balances.filter(isAsset)];
  const data = rows.map(({ balance_account, currency, proved_until, ...amounts }) => {
    const { available, reserved, pending = 0 } = amounts;
    const debt = receivables.find((row) => row.currency === currency)?.owed ?? 0;
    // Chargebacks are debited from `main`.
    const owed = balance_account === MAIN_BALANCE ? debt : 0;
    return {
      object: 'balance',
      balance_account,
      ...presentMoney(currency, { available, reserved, pending, owed }),
      proved_until,
    };
  });
  return { object: 'list', data };
}

/** @see docs/api.md#balances */
export function presentBalanceTransaction(row: BalanceTransactionDocument) {
  const { _id, type, balance_account, currency, position } = row;
  const created_at = readPositionTime(position);
  const day = readDueDay(row);
  return {
    id: `txn_${deriveUuid(_id)}`,
    object: 'balance_transaction',
    type,
    balance_account,
    ...presentMoney(currency, readChange(row)),
    available_on: day === null ? created_at : `${day}T00:00:00.000Z`,
    source: findSource(row),
    created_at,
  };
}

/** Writes integers of a currency, texts of an asset. */
function presentMoney(currency: string, amounts: Record<string, number | bigint>) {
  const pair = parseBookCurrency(currency);
  const texts = Object.entries(amounts).map(([name, amount]) => [name, String(amount)] as const);
  if (pair !== undefined) return { ...pair, ...Object.fromEntries(texts) };
  const numbers = texts.map(([name, text]) => [name, new NumberLiteral(text)] as const);
  return { currency, ...Object.fromEntries(numbers) };
}
