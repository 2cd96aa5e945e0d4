import { proxyActivities, setCurrentDetails, workflowInfo } from '@temporalio/workflow';
import type { SettleActivities } from '../../activities/schedules/settle';
import type { SettleResult } from '../../src/domain/crypto/settle';

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
