import type { Api, CallOptions } from '../api';
import { createList } from '../list';
import type { BalanceList, BalanceTransactionList, ListBalanceTransactionsQuery } from '../schema';

export type BalanceTransaction = BalanceTransactionList['data'][number];

export function createBalances(api: Api) {
  return {
    list: async (options?: CallOptions) =>
      (await api.get<BalanceList>('/v1/balances', {}, options)).data,
  };
}

export function createBalanceTransactions(api: Api) {
  return {
    /** Every change of what is available. */
    list: (query?: ListBalanceTransactionsQuery, options?: CallOptions) =>
      createList<BalanceTransaction>(api, { path: '/v1/balance_transactions', query, options }),
  };
}
