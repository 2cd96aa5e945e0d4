import { defineSearchAttributeKey } from '@temporalio/common';
import {
  ActivityFailure,
  ApplicationFailure,
  proxyActivities,
  setCurrentDetails,
  TimeoutFailure,
  upsertSearchAttributes,
} from '@temporalio/workflow';
import type { WebhookActivities } from '../../activities/webhooks';
import type { WebhookDeliveryInput } from '../../src/domain/event';
import { ATTEMPTS_MAX, FIRST_WAIT_MS } from '../../src/domain/webhook-schedule';

const attention = defineSearchAttributeKey('ServiceAttention', 'KEYWORD');

export interface WebhookDeliveryResult {
  outcome: 'delivered' | 'no_endpoint' | 'exhausted';
}

/**
 * The server's own retries are the schedule: the history holds one activity however many attempts.
 * There is no schedule-to-close limit, which would refuse the twelfth. Each failure also names the
 * exact wait; these doubling ones serve when an attempt ended without a word.
 * @see docs/webhooks.md#answer-and-retries
 */
const { deliverWebhook } = proxyActivities<WebhookActivities>({
  startToCloseTimeout: '30s',
  retry: {
    initialInterval: FIRST_WAIT_MS,
    backoffCoefficient: 2,
    // The default would cap the waits at 100 times the first.
    maximumInterval: '12h',
    maximumAttempts: ATTEMPTS_MAX,
  },
  summary: 'post the event',
});

const { recordExhausted } = proxyActivities<WebhookActivities>({
  startToCloseTimeout: '10s',
  retry: { initialInterval: '1s', maximumInterval: '1m' },
  summary: 'record that all attempts failed',
});

/** Delivers one event; started on the webhooks queue as `webhook:{event id}`. */
export async function webhookDelivery(input: WebhookDeliveryInput): Promise<WebhookDeliveryResult> {
  setCurrentDetails(
    `**Delivering** \`${input.event_id}\`${input.run > 0 ? `, redelivery ${input.run}` : ''}.\n\n` +
      'The pending activity shows the attempt, the last failure and the next time.',
  );
  try {
    return end(input, await deliverWebhook(input));
  } catch (error) {
    const lastFailure = describeExhaustion(error);
    if (lastFailure === undefined) throw error;
    const outcome = await recordExhausted(input);
    if (outcome === 'exhausted') {
      upsertSearchAttributes([{ key: attention, value: 'webhook_exhausted' }]);
    }
    return end(input, outcome, lastFailure);
  }
}

function end(
  { event_id }: WebhookDeliveryInput,
  outcome: WebhookDeliveryResult['outcome'],
  lastFailure?: string,
): WebhookDeliveryResult {
  const said = {
    delivered: `**Delivered** \`${event_id}\`.`,
    no_endpoint: `**No endpoint** is registered for \`${event_id}\`: nothing was sent.`,
    exhausted:
      `**Exhausted**: all ${ATTEMPTS_MAX} attempts to deliver \`${event_id}\` failed.\n\n` +
      `Last failure: ${lastFailure}\n\n` +
      `Once the endpoint works, send it again: \`event redeliver ${event_id}\`.`,
  }[outcome];
  setCurrentDetails(said);
  return { outcome };
}

/** The failure of the last attempt; undefined for a cancellation or a fault of the product. */
function describeExhaustion(error: unknown): string | undefined {
  if (!(error instanceof ActivityFailure)) return undefined;
  const { cause } = error;
  if (cause instanceof TimeoutFailure) return 'the attempt did not end in time.';
  if (cause instanceof ApplicationFailure && cause.nonRetryable !== true) return cause.message;
  return undefined;
}
