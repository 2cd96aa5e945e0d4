import { createCryptoPaymentActivities } from './crypto-payments';
import { createCryptoSettlementActivities } from './crypto-settlements';
import { createDisputeActivities } from './disputes';
import { createMovements } from './movements';
import { createPaymentActivities, type PaymentActivityDeps } from './payments';
import { createPayoutActivities } from './payouts';
import { createRefundActivities } from './refunds';
import { createAuthorizeAct } from './shared/operator-acts';
import { recordRefused, recordUnapplied } from './shared/record';
import type { RecordRefused, RecordUnapplied } from './shared/record-table';

export function createLifecycleActivities(deps: PaymentActivityDeps) {
  return {
    ...createPaymentActivities(deps),
    ...createRefundActivities(deps),
    ...createPayoutActivities(deps),
    ...createDisputeActivities(deps),
    ...createMovements(deps),
    ...createCryptoPaymentActivities(deps),
    ...createCryptoSettlementActivities(deps),
    ...createAuthorizeAct(deps),
    recordRefused: (input: RecordRefused): Promise<void> => recordRefused(deps, input),
    recordUnapplied: (input: RecordUnapplied): Promise<void> => recordUnapplied(deps, input),
  };
}

export type LifecycleActivities = ReturnType<typeof createLifecycleActivities>;
