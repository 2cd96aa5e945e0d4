import * as webhooks from '../domain/wire/webhook-endpoints';
import type { ApiKey } from '../service/access';
import { findEndpoint, presentEndpoint } from '../service/events/endpoints/manage';
import {
  type Caller,
  createMerchantEndpoint,
  deleteMerchantEndpoint,
  listMerchantEndpoints,
  redeliverMerchantEvent,
  rollMerchantSecret,
  testMerchantEndpoint,
  updateMerchantEndpoint,
} from '../service/events/endpoints/merchant';
import { presentPage } from '../service/money/present';
import type { ApiDeps } from './context';
import type { Mount } from './mount';

/** @see docs/api.md#webhook-endpoints */
export function mountWebhooks(mount: Mount, deps: ApiDeps): void {
  mount.create(webhooks.createWebhookEndpoint, (request, call) =>
    createMerchantEndpoint(deps, request, toCaller({ ...call, ...request }).actor),
  );
  mount.endpoint(webhooks.getWebhookEndpoint, async ({ key, params }) =>
    presentEndpoint(await findEndpoint(deps, key, params.id)),
  );
  mount.endpoint(webhooks.listWebhookEndpoints, async ({ key, query }) =>
    presentPage(await listMerchantEndpoints(deps, key, query), presentEndpoint),
  );
  mount.endpoint(webhooks.updateWebhookEndpoint, async ({ params, body, ...call }) =>
    presentEndpoint(await updateMerchantEndpoint(deps, toCaller(call), params.id, body)),
  );
  mount.endpoint(webhooks.deleteWebhookEndpoint, ({ params, ...call }) =>
    deleteMerchantEndpoint(deps, toCaller(call), params.id),
  );
  mount.endpoint(webhooks.rollWebhookSecret, ({ params, body, ...call }) =>
    rollMerchantSecret(deps, toCaller(call), params.id, body.after),
  );
  mount.endpoint(webhooks.testWebhookEndpoint, ({ params, body, ...call }) =>
    testMerchantEndpoint(deps, toCaller(call), params.id, body.type),
  );
  mount.endpoint(webhooks.redeliverEvent, ({ params, body, ...call }) =>
    redeliverMerchantEvent(deps, toCaller(call), params.id, body.endpoint_id ?? undefined),
  );
}

interface ApiCall {
  key: ApiKey;
  address: string;
  requestId: string;
}

function toCaller({ key, address, requestId: request_id }: ApiCall): Caller {
  const { _id: key_id, account_id, livemode } = key;
  const actor = { via: 'api', key_id, address, request_id } as const;
  return { owner: { account_id, livemode }, actor, request_id };
}
