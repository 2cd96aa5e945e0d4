import { createPaymentActivities, type PaymentActivityDeps } from './payments';
import { createWebhookActivities, type WebhookActivityDeps } from './webhooks';

/** Activities of the queue `lifecycle`. */
export function createLifecycleActivities(deps: PaymentActivityDeps) {
  return { ...createPaymentActivities(deps) };
}

/** Activities of the queue `webhooks`. */
export function createDeliveryActivities(deps: WebhookActivityDeps) {
  return { ...createWebhookActivities(deps) };
}
