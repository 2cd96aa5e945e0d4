import { type Api, type CallOptions, route } from '../api';
import { createList } from '../list';
import type { Dispute, ListDisputesQuery, SubmitEvidence } from '../schema';

export function createDisputes(api: Api) {
  return {
    get: (id: string, options?: CallOptions) =>
      api.get<Dispute>(route`/v1/disputes/${id}`, {}, options),
    list: (query?: ListDisputesQuery, options?: CallOptions) =>
      createList<Dispute>(api, { path: '/v1/disputes', query, options }),
    /** Sends the bank evidence, once; other evidence is refused from then on. */
    submitEvidence: (id: string, body: SubmitEvidence, options?: CallOptions) =>
      api.post<Dispute>(route`/v1/disputes/${id}/evidence`, body, options),
    /** Gives in: what the bank took stays with the customer. */
    accept: (id: string, options?: CallOptions) =>
      api.post<Dispute>(route`/v1/disputes/${id}/accept`, {}, options),
  };
}
