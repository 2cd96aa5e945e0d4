import {
  proxyActivities,
  setCurrentDetails,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import type { AuditActivities } from '../activities/schedules/audit';
import type { LedgerCheckActivities } from '../activities/schedules/ledger';
import type { RetentionActivities } from '../activities/schedules/retention';
import type { SettleActivities } from '../activities/schedules/settle';
import type { SettleResult } from '../src/domain/crypto/settle';
import {
  type AuditResult,
  auditAttention,
  type CallbackFindings,
  type DeliveryFindings,
  type OrphanFindings,
} from '../src/domain/operators/audit-log';
import type { LedgerCheckResult } from '../src/domain/operators/ledger-check';
import type { RetentionResult } from '../src/domain/operators/retention';
import { quoteMarkdown } from '../src/domain/printable';
import { SEARCH_KEYS } from '../src/domain/search-attributes';

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

function describeDeliveries({ checked, restarted, failed, named }: DeliveryFindings): string {
  const left = failed > 0 ? ` ${failed} are left to the next audit: see the worker's log.` : '';
  const summary = `${checked} deliveries late, ${restarted} without a workflow.${left}`;
  return restarted === 0 ? summary : `${summary} These were started again.${formatList(named)}`;
}

function describeCallbacks({ delivered, waiting, parked, named }: CallbackFindings): string {
  const summary = `${delivered} callbacks delivered late, ${waiting} not deliverable, ${parked} parked.`;
  if (named.length === 0) return summary;
  return `${summary} See \`callback list\`, then \`callback deliver ID\`.${formatList(named)}`;
}

function formatList(named: readonly string[]): string {
  return `\n\n${named.map((id) => `- ${quoteMarkdown(id)}`).join('\n')}`;
}

/** Checkpoints keep what an attempt has read. */
const { verifyBooks } = proxyActivities<LedgerCheckActivities>({
  startToCloseTimeout: '24h',
  heartbeatTimeout: '1m',
  retry: { initialInterval: '1m', maximumInterval: '10m', maximumAttempts: 5 },
});

/** @see docs/ledger.md#ledger-verify */
export async function ledgerCheck(): Promise<LedgerCheckResult> {
  setCurrentDetails('**Comparing** balances with their journal entries.');
  const result = await verifyBooks();
  const { full, books, postings, differences, named } = result;
  const scope = `${postings} entries in ${books} books${full ? ', all again' : ''}`;
  if (differences > 0) {
    upsertSearchAttributes([{ key: SEARCH_KEYS.attention, value: 'ledger_differs' }]);
  }
  const headline =
    differences === 0
      ? '**Nothing differs.**'
      : `⚠ **ledger_differs**: ${differences}. See \`ledger verify\`.`;
  setCurrentDetails(
    [headline, scope, ...named.map((line) => `- ${quoteMarkdown(line)}`)].join('\n\n'),
  );
  return result;
}

const { deleteOldRecipients, blankOldPayers, deleteOldRecords } =
  proxyActivities<RetentionActivities>({
    startToCloseTimeout: '2h',
    heartbeatTimeout: '1m',
    retry: { initialInterval: '10s', maximumInterval: '5m', maximumAttempts: 5 },
  });

/** @see docs/operations.md#what-grows */
export async function retention(): Promise<RetentionResult> {
  setCurrentDetails('**Looking** for what has reached the end of its retention period.');
  const recipients = await deleteOldRecipients();
  const payers = await blankOldPayers();
  const records = await deleteOldRecords();
  setCurrentDetails(
    `**Done.** ${recipients} recipients deleted, ${payers} payers redacted, ${records} events and ` +
      'callbacks deleted.',
  );
  return { recipients, payers, records };
}

const { settleBalances } = proxyActivities<SettleActivities>({
  startToCloseTimeout: '1h',
  heartbeatTimeout: '1m',
  retry: { initialInterval: '10s', maximumInterval: '5m', maximumAttempts: 10 },
});

/** @see docs/operators.md#the-daily-settlements */
export async function cryptoSettlements(): Promise<SettleResult> {
  setCurrentDetails('**Starting** the settlements of the day.');
  const result = await settleBalances({ run: workflowInfo().firstExecutionRunId });
  const { wallets, started } = result;
  setCurrentDetails(`${wallets} wallets looked at, ${started} settlements started.`);
  return result;
}
