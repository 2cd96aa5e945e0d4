import {
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import type { WebhookActivities } from '../../activities/webhooks/deliver';
import type { DeliveryOutcome } from '../../activities/webhooks/next-attempt';
import { SEARCH_KEYS } from '../../src/domain/search-attributes';
import { WEBHOOK_EXHAUSTED, type WebhookDeliveryInput } from '../../src/domain/webhook/delivery';
import { ATTEMPTS_MAX } from '../../src/domain/webhook/schedule';

export interface WebhookDeliveryResult {
  outcome: 'delivered' | 'no_endpoint' | 'disabled' | 'exhausted';
}

/**
 * The server's own retries are the schedule: the history holds one activity for all attempts. Each
 * failed attempt names the exact wait, and the last one ends the retries; the policy applies to a
 * lost try, which uses up no attempt. A schedule-to-close limit would refuse the twelfth.
 * @see docs/webhooks.md#answer-and-retries
 */
const { deliverWebhook } = proxyActivities<WebhookActivities>({
  startToCloseTimeout: '30s',
  // As long as a workflow task has, so that a lost worker is noticed as soon.
  heartbeatTimeout: '10s',
  retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '10m' },
  summary: 'post the event',
});

/** Runs within the first task, so that an immediate delivery needs no other. */
const { firstAttempt } = proxyLocalActivities<WebhookActivities>({
  startToCloseTimeout: '15s',
  retry: { maximumAttempts: 1 },
});

/** In a longer history the first task has ended. */
const FIRST_TASK_EVENTS = 3;

const { recordExhausted } = proxyActivities<WebhookActivities>({
  startToCloseTimeout: '10s',
  retry: { initialInterval: '1s', maximumInterval: '1m' },
  summary: 'record that all attempts failed',
});

export function webhookDelivery(input: WebhookDeliveryInput): Promise<WebhookDeliveryResult> {
  // A cancel request from the Temporal UI would leave the event undelivered for good.
  return CancellationScope.nonCancellable(() => deliver(input));
}

async function deliver(input: WebhookDeliveryInput): Promise<WebhookDeliveryResult> {
  const { event_id, endpoint_id, run } = input;
  const redelivery = run > 0 ? `, redelivery ${run}` : '';
  setCurrentDetails(
    `**Delivering** \`${event_id}\` to \`${endpoint_id}\`${redelivery}.\n\n` +
      'The pending activity shows the last failure and the next time.',
  );
  try {
    return end(input, await attempts(input));
  } catch (error) {
    const lastFailure = describeExhaustion(error);
    if (lastFailure === undefined) throw error;
    const outcome = await recordExhausted(input);
    if (outcome === 'exhausted' && input.attempts_max === undefined) {
      upsertSearchAttributes([{ key: SEARCH_KEYS.attention, value: 'webhook_exhausted' }]);
    }
    return end(input, outcome, lastFailure);
  }
}

async function attempts(input: WebhookDeliveryInput): Promise<DeliveryOutcome> {
  const resumed = { ...input, resume: true } as const;
  // A repeated task, after its worker was lost, may have posted.
  const isRepeat = workflowInfo().historyLength > FIRST_TASK_EVENTS;
  const started = isRepeat ? resumed : input;
  const first_at_ms = Date.now();
  const first = await firstAttempt(started).catch(unlessUnknown);
  if (first === 'delivered' || first === 'no_endpoint' || first === 'disabled') return first;
  if (first === 'skipped') return await deliverWebhook(started);
  const postedResult = typeof first === 'object' ? first : {};
  return await deliverWebhook({ ...resumed, first_at_ms, ...postedResult });
}

/** The database knows whether a lost attempt was made. A missing event ends the delivery. */
function unlessUnknown(error: unknown): 'failed' {
  const cause = error instanceof ActivityFailure ? error.cause : undefined;
  if (cause instanceof ApplicationFailure && cause.nonRetryable === true) throw error;
  return 'failed';
}

function end(
  { event_id }: WebhookDeliveryInput,
  outcome: WebhookDeliveryResult['outcome'],
  lastFailure?: string,
): WebhookDeliveryResult {
  const details = {
    delivered: `**Delivered** \`${event_id}\`.`,
    no_endpoint: `**No endpoint** is registered for \`${event_id}\`: nothing was sent.`,
    disabled: `**Disabled**: the endpoint was disabled before \`${event_id}\` was delivered.`,
    exhausted:
      `**Exhausted**: all ${ATTEMPTS_MAX} attempts to deliver \`${event_id}\` failed.\n\n` +
      `Last failure: ${lastFailure}\n\n` +
      `Once the endpoint works, send it again: \`event redeliver ${event_id}\`.`,
  }[outcome];
  setCurrentDetails(details);
  return { outcome };
}

function describeExhaustion(error: unknown): string | undefined {
  const cause = error instanceof ActivityFailure ? error.cause : undefined;
  if (!(cause instanceof ApplicationFailure) || cause.type !== WEBHOOK_EXHAUSTED) return undefined;
  return cause.message;
}
