import { inTransaction } from '../../../base/mongo';
import { hasFailedTooLong } from '../../../domain/webhook/endpoint';
import { auditBy } from '../../../store/audit';
import type { DeliveryAttempt } from '../../../store/deliveries';
import type { Endpoint } from '../../../store/endpoints';
import { getOrigin } from '../../../webhooks/url';
import type { ServiceDeps } from '../../deps';
import { notifyOwners } from '../../merchants/mail/outbox';
import { toAuditFacts } from './manage';

interface HealthDeps extends Pick<ServiceDeps, 'mongo' | 'stores' | 'now'> {
  log: Record<'warn', (fields: { account_id: string; err?: unknown }, message: string) => void>;
}

export interface EndpointHealth {
  /** Never fails: a delivery does not depend on it. */
  note: (endpoint: Endpoint, attempt: DeliveryAttempt) => Promise<void>;
}

/**
 * Disables an endpoint after days without a success. A first attempt notes no failure, which saves
 * a write.
 * @see docs/webhooks.md#an-endpoint-that-keeps-failing
 */
export function createEndpointHealth(deps: HealthDeps): EndpointHealth {
  const { endpoints } = deps.stores;
  return {
    note: async (endpoint, { outcome, attempt, at }) => {
      const { account_id, failing_since, last_success_at = '' } = endpoint;
      try {
        if (outcome === 'delivered') {
          await endpoints.noteSuccess(endpoint, at);
        } else if (failing_since === undefined) {
          if (attempt > 1) await endpoints.noteFailing(endpoint, at);
        } else {
          // Another process may have noted a failure after a later success.
          const since = failing_since > last_success_at ? failing_since : last_success_at;
          if (hasFailedTooLong(since, Date.parse(at))) await disable(deps, endpoint, since, at);
        }
      } catch (err) {
        deps.log.warn({ account_id, err }, 'the health of an endpoint was not noted');
      }
    },
  };
}

async function disable(
  deps: HealthDeps,
  before: Endpoint,
  since: string,
  at: string,
): Promise<void> {
  const { stores, log } = deps;
  const { account_id, livemode, endpoint_id } = before;
  const audit = auditBy(deps, { via: 'service' });
  const isDisabled = await inTransaction(deps.mongo, async (session) => {
    const after = await stores.endpoints.disableFailing(before, since, at, session);
    if (after === null) return false;
    const line = { act: 'webhook.disabled', account_id, livemode, target: endpoint_id } as const;
    await audit({ ...line, before: toAuditFacts(before), after: toAuditFacts(after) }, session);
    const host = getOrigin(before.url);
    const subject = { kind: 'endpoint_disabled', host, since, livemode } as const;
    await notifyOwners(deps, account_id, subject, session);
    return true;
  });
  if (isDisabled) log.warn({ account_id }, 'endpoint disabled after days of failures');
}
