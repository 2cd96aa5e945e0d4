import { type Api, type CallOptions, type CreateOptions, route } from '../api';
import { createList } from '../list';
import type { CreateRefund, ListRefundsQuery, Refund } from '../schema';

export function createRefunds(api: Api) {
  return {
    /** Refunds a settled payment: `amount`, or all that is left. */
    create: (body: CreateRefund, options?: CreateOptions) =>
      api.create<Refund>('/v1/refunds', body, options),
    get: (id: string, options?: CallOptions) =>
      api.get<Refund>(route`/v1/refunds/${id}`, {}, options),
    list: (query?: ListRefundsQuery, options?: CallOptions) =>
      createList<Refund>(api, { path: '/v1/refunds', query, options }),
  };
}
