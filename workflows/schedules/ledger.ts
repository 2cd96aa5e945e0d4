import { proxyActivities, setCurrentDetails, upsertSearchAttributes } from '@temporalio/workflow';
import type { LedgerCheckActivities } from '../../activities/schedules/ledger';
import type { LedgerCheckResult } from '../../src/domain/ledger-check';
import { SEARCH_KEYS } from '../../src/domain/search-attributes';

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
  setCurrentDetails([headline, scope, ...named.map((line) => `- ${line}`)].join('\n\n'));
  return result;
}
