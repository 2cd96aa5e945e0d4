import { createCryptoPaymentActivities } from './crypto-payments';
import { createCryptoSettlementActivities } from './crypto-settlements';
import { createPaymentActivities, type PaymentActivityDeps } from './payments';
import { createPayoutActivities } from './payouts';
import { recordRefused, recordUnapplied } from './record';
import type { RecordRefused, RecordUnapplied } from './record-inputs';
import { createRefundActivities } from './refunds';
import type { WebhookActivityDeps } from './webhook-next';
import { createWebhookActivities } from './webhooks';

/** The activities of the queue `lifecycle`. */
export function createLifecycleActivities(deps: PaymentActivityDeps) {
  return {
    ...createPaymentActivities(deps),
    ...createRefundActivities(deps),
    ...createPayoutActivities(deps),
    ...createCryptoPaymentActivities(deps),
    ...createCryptoSettlementActivities(deps),
    recordRefused: (input: RecordRefused): Promise<void> => recordRefused(deps, input),
    recordUnapplied: (input: RecordUnapplied): Promise<void> => recordUnapplied(deps, input),
  };
}

export type LifecycleActivities = ReturnType<typeof createLifecycleActivities>;

/** The activities of the queue `webhooks`. */
export function createDeliveryActivities(deps: WebhookActivityDeps) {
  return { ...createWebhookActivities(deps) };
}
