import { type Api, type CallOptions, type CreateOptions, route } from '../api';
import { createList } from '../list';
import type {
  CreateWebhookEndpoint,
  Event,
  ListWebhookEndpointsQuery,
  RollWebhookSecret,
  TestWebhookEndpoint,
  UpdateWebhookEndpoint,
  WebhookEndpoint,
  WebhookEndpointWithSecret,
} from '../schema';

export function createWebhookEndpoints(api: Api) {
  return {
    /** Creates an endpoint; store its `signing_secret`, which is shown once. */
    create: (body: CreateWebhookEndpoint, options?: CreateOptions) =>
      api.create<WebhookEndpointWithSecret>('/v1/webhook-endpoints', body, options),
    get: (id: string, options?: CallOptions) =>
      api.get<WebhookEndpoint>(route`/v1/webhook-endpoints/${id}`, {}, options),
    list: (query?: ListWebhookEndpointsQuery, options?: CallOptions) =>
      createList<WebhookEndpoint>(api, { path: '/v1/webhook-endpoints', query, options }),
    update: (id: string, body: UpdateWebhookEndpoint, options?: CallOptions) =>
      api.patch<WebhookEndpoint>(route`/v1/webhook-endpoints/${id}`, body, options),
    delete: (id: string, options?: CallOptions) =>
      api.delete<WebhookEndpoint>(route`/v1/webhook-endpoints/${id}`, options),
    /** Creates a new secret; a repeat would create another, so it is not repeated when it fails. */
    rollSecret: (id: string, body: Partial<RollWebhookSecret> = {}, options?: CallOptions) =>
      api.postOnce<WebhookEndpointWithSecret>(
        route`/v1/webhook-endpoints/${id}/roll-secret`,
        body,
        options,
      ),
    /** Sends a test event, once. */
    test: (id: string, body: TestWebhookEndpoint, options?: CallOptions) =>
      api.postOnce<Event>(route`/v1/webhook-endpoints/${id}/test`, body, options),
  };
}
