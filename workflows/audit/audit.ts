import { proxyActivities, setCurrentDetails, upsertSearchAttributes } from '@temporalio/workflow';
import type { AuditActivities } from '../../activities/audit';
import {
  type AuditResult,
  auditAttention,
  type CallbacksFound,
  type DeliveriesFound,
  type OrphansFound,
} from '../../src/domain/audit';
import { SEARCH_KEYS } from '../../src/domain/search-attributes';

/** A walk may be long; each step of it is told, so that a lost worker is noticed in a minute. */
const { auditResources, auditDeliveries, auditCallbacks } = proxyActivities<AuditActivities>({
  startToCloseTimeout: '30m',
  heartbeatTimeout: '1m',
  retry: { initialInterval: '10s', maximumInterval: '5m', maximumAttempts: 5 },
});

/**
 * Looks for what was forgotten: callbacks that were never signalled, deliveries and resources
 * without a workflow. It mends what is safe to repeat, and asks a person for the rest.
 * @see docs/operators.md#the-audit
 */
export async function audit(): Promise<AuditResult> {
  setCurrentDetails('**Looking** for what was forgotten.');
  // First, since a callback may start the workflow of an orphan again.
  const callbacks = await auditCallbacks();
  const deliveries = await auditDeliveries();
  const orphans = await auditResources();
  const attention = auditAttention({ orphans, callbacks });
  if (attention !== null) {
    upsertSearchAttributes([{ key: SEARCH_KEYS.attention, value: attention }]);
  }
  const parts = [aboutOrphans(orphans), aboutDeliveries(deliveries), aboutCallbacks(callbacks)];
  const mark = attention === null ? '**All is well.**' : `⚠ **${attention}**`;
  setCurrentDetails([mark, ...parts].join('\n\n'));
  return { orphans, deliveries, callbacks, attention };
}

function aboutOrphans({ checked, found, named }: OrphansFound): string {
  const looked = `${checked} payments, refunds and payouts under way, ${found} without a workflow.`;
  if (found === 0) return looked;
  return `${looked} See \`orphan list\`, then \`orphan restart\`.${listed(named)}`;
}

function aboutDeliveries({ checked, restarted, named }: DeliveriesFound): string {
  const looked = `${checked} deliveries late, ${restarted} without a workflow.`;
  return restarted === 0 ? looked : `${looked} These were started again.${listed(named)}`;
}

function aboutCallbacks({ delivered, waiting, parked, named }: CallbacksFound): string {
  const looked = `${delivered} callbacks delivered late, ${waiting} not deliverable, ${parked} parked.`;
  if (named.length === 0) return looked;
  return `${looked} See \`callback list\`, then \`callback deliver ID\`.${listed(named)}`;
}

function listed(named: readonly string[]): string {
  return `\n\n${named.map((id) => `- \`${id}\``).join('\n')}`;
}
