import { type Api, type CallOptions, type CreateOptions, route } from '../api';
import { createList } from '../list';
import type {
  CreatePayment,
  ListPaymentRefundsQuery,
  ListPaymentsQuery,
  Payment,
  Refund,
} from '../schema';

export function createPayments(api: Api) {
  return {
    /** Creates a payment; send the customer to its `redirect_url`. */
    create: (body: CreatePayment, options?: CreateOptions) =>
      api.create<Payment>('/v1/payments', body, options),
    get: (id: string, options?: CallOptions) =>
      api.get<Payment>(route`/v1/payments/${id}`, {}, options),
    list: (query?: ListPaymentsQuery, options?: CallOptions) =>
      createList<Payment>(api, { path: '/v1/payments', query, options }),
    /** Cancels a payment that the customer has not paid; `cannot_cancel` otherwise. */
    cancel: (id: string, options?: CallOptions) =>
      api.post<Payment>(route`/v1/payments/${id}/cancel`, {}, options),
    listRefunds: (id: string, query?: ListPaymentRefundsQuery, options?: CallOptions) =>
      createList<Refund>(api, { path: route`/v1/payments/${id}/refunds`, query, options }),
  };
}
