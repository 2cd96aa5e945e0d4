import { type Api, type CallOptions, type CreateOptions, route } from '../api';
import { createList } from '../list';
import type {
  CreatePayout,
  CreatePayoutRecipient,
  ListPayoutsQuery,
  Payout,
  PayoutMethodList,
  PayoutRecipient,
} from '../schema';

export function createRecipients(api: Api) {
  return {
    /** Creates a recipient, which any number of payouts can name. */
    create: (body: CreatePayoutRecipient, options?: CreateOptions) =>
      api.create<PayoutRecipient>('/v1/payout-recipients', body, options),
    /** Deletes the recipient's details; payouts to it are refused from then on. */
    delete: (id: string, options?: CallOptions) =>
      api.delete<PayoutRecipient>(route`/v1/payout-recipients/${id}`, options),
  };
}

export function createPayouts(api: Api) {
  return {
    /** Sends money to a recipient, out of the balance account that `metadata` may name. */
    create: (body: CreatePayout, options?: CreateOptions) =>
      api.create<Payout>('/v1/payouts', body, options),
    get: (id: string, options?: CallOptions) =>
      api.get<Payout>(route`/v1/payouts/${id}`, {}, options),
    list: (query?: ListPayoutsQuery, options?: CallOptions) =>
      createList<Payout>(api, { path: '/v1/payouts', query, options }),
    /** Rails that your account can use now. */
    listMethods: async (options?: CallOptions) =>
      (await api.get<PayoutMethodList>('/v1/payout-methods', {}, options)).data,
  };
}
