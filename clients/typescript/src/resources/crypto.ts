import { type Api, type CallOptions, type CreateOptions, route } from '../api';
import { createList } from '../list';
import type {
  CreateCryptoPayment,
  CreateCryptoSettlement,
  CryptoPayment,
  CryptoSettlement,
  ListCryptoPaymentsQuery,
  ListCryptoSettlementsQuery,
} from '../schema';

const PAYMENTS = '/v1/crypto/payments';
const SETTLEMENTS = '/v1/crypto/settlements';

export function createCrypto(api: Api) {
  return {
    payments: {
      create: (body: CreateCryptoPayment, options?: CreateOptions) =>
        api.create<CryptoPayment>(PAYMENTS, body, options),
      get: (id: string, options?: CallOptions) =>
        api.get<CryptoPayment>(route`/v1/crypto/payments/${id}`, {}, options),
      list: (query?: ListCryptoPaymentsQuery, options?: CallOptions) =>
        createList<CryptoPayment>(api, { path: PAYMENTS, query, options }),
    },
    settlements: {
      /** Pays a balance out to your wallet now; it is also paid out daily. */
      create: (body: CreateCryptoSettlement, options?: CreateOptions) =>
        api.create<CryptoSettlement>(SETTLEMENTS, body, options),
      get: (id: string, options?: CallOptions) =>
        api.get<CryptoSettlement>(route`/v1/crypto/settlements/${id}`, {}, options),
      list: (query?: ListCryptoSettlementsQuery, options?: CallOptions) =>
        createList<CryptoSettlement>(api, { path: SETTLEMENTS, query, options }),
    },
  };
}
