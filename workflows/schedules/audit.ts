import { proxyActivities, setCurrentDetails, upsertSearchAttributes } from '@temporalio/workflow';
import type { AuditActivities } from '../../activities/schedules/audit';
import {
  type AuditResult,
  auditAttention,
  type CallbackFindings,
  type DeliveryFindings,
  type OrphanFindings,
} from '../../src/domain/audit';
import { SEARCH_KEYS } from '../../src/domain/search-attributes';

/** Heartbeats show a lost worker in a minute. */
const { auditResources, auditDeliveries, auditCallbacks } = proxyActivities<AuditActivities>({
  startToCloseTimeout: '30m',
  heartbeatTimeout: '1m',
  retry: { initialInterval: '10s', maximumInterval: '5m', maximumAttempts: 5 },
});

/**
 * Fixes what is safe to repeat, and notifies operators of the rest.
 * @see docs/operators.md#the-audit
 */
export async function audit(): Promise<AuditResult> {
  setCurrentDetails('**Looking** for lost work.');
  // First, since a callback may start the workflow of an orphan again.
  const callbacks = await auditCallbacks();
  const deliveries = await auditDeliveries();
  const orphans = await auditResources();
  const attention = auditAttention({ orphans, callbacks });
  if (attention !== null) {
    upsertSearchAttributes([{ key: SEARCH_KEYS.attention, value: attention }]);
  }
  const parts = [
    describeOrphans(orphans),
    describeDeliveries(deliveries),
    describeCallbacks(callbacks),
  ];
  const headline = attention === null ? '**All is well.**' : `⚠ **${attention}**`;
  setCurrentDetails([headline, ...parts].join('\n\n'));
  return { orphans, deliveries, callbacks, attention };
}

function describeOrphans({ checked, found, named, walked_at }: OrphanFindings): string {
  const walked = walked_at ? ` Everything was checked by ${walked_at}.` : '';
  const summary = `${checked} resources checked, ${found} without a workflow.${walked}`;
  if (found === 0) return summary;
  return `${summary} See \`orphan list\`, then \`orphan restart\`.${formatList(named)}`;
}

function describeDeliveries({ checked, restarted, named }: DeliveryFindings): string {
  const summary = `${checked} deliveries late, ${restarted} without a workflow.`;
  return restarted === 0 ? summary : `${summary} These were started again.${formatList(named)}`;
}

function describeCallbacks({ delivered, waiting, parked, named }: CallbackFindings): string {
  const summary = `${delivered} callbacks delivered late, ${waiting} not deliverable, ${parked} parked.`;
  if (named.length === 0) return summary;
  return `${summary} See \`callback list\`, then \`callback deliver ID\`.${formatList(named)}`;
}

function formatList(named: readonly string[]): string {
  return `\n\n${named.map((id) => `- \`${id}\``).join('\n')}`;
}
