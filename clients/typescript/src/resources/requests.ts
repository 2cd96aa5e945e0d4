import type { Api, CallOptions } from '../api';
import { createList } from '../list';
import type { ApiRequest, ListRequestsQuery } from '../schema';

export function createRequests(api: Api) {
  return {
    /** Writes and errors of the last seven days. */
    list: (query?: ListRequestsQuery, options?: CallOptions) =>
      createList<ApiRequest>(api, { path: '/v1/requests', query, options }),
  };
}
