import {
  ActivityCancellationType,
  ActivityFailure,
  type ActivityOptions,
  ApplicationFailure,
  allHandlersFinished,
  CancellationScope,
  condition,
  defineUpdate,
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  setHandler,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import type { WebhookActivities } from '../../activities/webhooks/deliver';
import type { DeliveryOutcome } from '../../activities/webhooks/record';
import {
  ATTEMPTS_MAX,
  type DeliveryTarget,
  type EndpointDeliveryInput,
  REDELIVER,
  WEBHOOK_EXHAUSTED,
  type WebhookDeliveryInput,
} from '../../src/domain/events/delivery';
import { quoteMarkdown } from '../../src/domain/printable';
import { SEARCH_KEYS } from '../../src/domain/search-attributes';

const redeliver = defineUpdate<void, [DeliveryTarget]>(REDELIVER);

type Outcome = DeliveryOutcome | 'exhausted';

/** By endpoint. */
export type WebhookDeliveryResult = Record<string, Outcome>;

/** Newest run to one endpoint. */
interface Line {
  run: number;
  scope: CancellationScope;
  outcome?: Outcome;
  lastFailure?: string;
  error?: unknown;
  hasEnded: boolean;
  ended: Promise<void>;
}

const { WAIT_CANCELLATION_COMPLETED } = ActivityCancellationType;

/**
 * The server's own retries are the schedule: the history holds one activity for all attempts. Each
 * failed attempt names the exact wait, and the last one ends the retries; the policy applies to a
 * lost try, which uses up no attempt. A schedule-to-close limit would refuse the twelfth.
 * @see docs/webhooks.md#answer-and-retries
 */
const ATTEMPTS = {
  startToCloseTimeout: '30s',
  // As long as a workflow task has, so that a lost worker is noticed as soon.
  heartbeatTimeout: '10s',
  retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '10m' },
  // The next run has the same ID; an attempt in progress ends first, and is stored.
  cancellationType: WAIT_CANCELLATION_COMPLETED,
} satisfies ActivityOptions;

/** Runs within the first task, so that an immediate delivery needs no other. */
const { firstAttempt } = proxyLocalActivities<WebhookActivities>({
  startToCloseTimeout: '15s',
  retry: { maximumAttempts: 1 },
  cancellationType: WAIT_CANCELLATION_COMPLETED,
});

/** In a longer history the first task has ended. */
const FIRST_TASK_EVENTS = 3;

/** Delivers an event to all of its endpoints at once: none waits for another. */
export function webhookDelivery(input: WebhookDeliveryInput): Promise<WebhookDeliveryResult> {
  // A cancel request from the Temporal UI would leave the event undelivered for good.
  return CancellationScope.nonCancellable(() => deliver(input));
}

async function deliver(input: WebhookDeliveryInput): Promise<WebhookDeliveryResult> {
  const lines = new Map<string, Line>();
  const parent = CancellationScope.current();
  let begun = 0;
  const show = createDisplay(input, lines);
  const begin = (target: DeliveryTarget): void => {
    const { endpoint_id, run, resume } = target;
    const earlier = lines.get(endpoint_id);
    if (earlier !== undefined) {
      // What has ended is resumed where the database has lost that.
      const isResumed = resume === true && earlier.hasEnded;
      if (earlier.run > run || (earlier.run === run && !isResumed)) return;
    }
    earlier?.scope.cancel();
    const scope = new CancellationScope({ cancellable: true, parent });
    const line: Line = { run, scope, hasEnded: false, ended: Promise.resolve() };
    lines.set(endpoint_id, line);
    line.ended = follow(line, { ...input, ...target }, earlier?.ended).then(show);
    begun += 1;
    show();
  };
  for (const target of input.endpoints) begin(target);
  setHandler(redeliver, begin, {
    description: 'Sends it again to {"endpoint_id": …, "run": …}. Sent by the service.',
  });
  for (let seen = -1; seen !== begun; ) {
    seen = begun;
    await Promise.all([...lines.values()].map(({ ended }) => ended));
    await condition(allHandlersFinished);
  }
  const results = [...lines].map(([endpoint_id, { outcome, error }]) => {
    if (outcome === undefined) throw error;
    return [endpoint_id, outcome] as const;
  });
  return Object.fromEntries(results);
}

/** Never fails, since the others go on. */
async function follow(
  line: Line,
  { endpoints: _others, ...input }: WebhookDeliveryInput & DeliveryTarget,
  earlier: Promise<void> | undefined,
): Promise<void> {
  await earlier;
  try {
    line.outcome = await line.scope.run(() => attempts(input));
  } catch (error) {
    line.error = error;
    const failure = findFailure(error);
    if (failure?.type === WEBHOOK_EXHAUSTED) {
      line.lastFailure = failure.message;
      line.outcome = 'exhausted';
    }
  }
  line.hasEnded = true;
}

async function attempts(input: EndpointDeliveryInput): Promise<DeliveryOutcome> {
  const { endpoint_id: activityId, run } = input;
  const summary = `post to ${activityId}`;
  const options = { ...ATTEMPTS, activityId, summary };
  const { deliverWebhook } = proxyActivities<WebhookActivities>(options);
  // A redelivery must not hold the task that answers its update.
  if (run > 0 || input.resume === true) return await deliverWebhook(input);
  const resumed = { ...input, resume: true } as const;
  // A repeated task, after its worker was lost, may have posted.
  const isRepeat = workflowInfo().historyLength > FIRST_TASK_EVENTS;
  const started = isRepeat ? resumed : input;
  const first_at_ms = Date.now();
  const first = await firstAttempt(started).catch((error: unknown) => {
    // The database knows whether a lost attempt was made. A missing event ends the delivery.
    if (findFailure(error)?.nonRetryable === true) throw error;
    return 'failed' as const;
  });
  if (first === 'delivered' || first === 'no_endpoint' || first === 'disabled') return first;
  if (first === 'skipped') return await deliverWebhook(started);
  const postedResult = typeof first === 'object' ? first : {};
  return await deliverWebhook({ ...resumed, first_at_ms, ...postedResult });
}

function findFailure(error: unknown): ApplicationFailure | undefined {
  const cause = error instanceof ActivityFailure ? error.cause : undefined;
  return cause instanceof ApplicationFailure ? cause : undefined;
}

/** Shows operators each endpoint, and whether one needs them. */
function createDisplay(
  { event_id, attempts_max }: WebhookDeliveryInput,
  lines: ReadonlyMap<string, Line>,
): () => void {
  let hasAttention = false;
  return () => {
    const states = [...lines].map(([endpoint_id, { run, outcome, lastFailure }]) => {
      const failure = quoteMarkdown(lastFailure ?? 'unknown');
      const texts = {
        delivered: '**delivered**.',
        no_endpoint: '**no endpoint**, since it was deleted: nothing was sent.',
        disabled: '**disabled** before it was delivered.',
        exhausted:
          `**exhausted**: all ${ATTEMPTS_MAX} attempts failed. Last failure: ${failure}. Once the ` +
          `endpoint works, send it again: \`event redeliver ${event_id}\`.`,
        pending: '**in progress**; its pending activity shows the last failure and the next time.',
      };
      const redelivery = run > 0 ? `, redelivery ${run}` : '';
      return `- \`${endpoint_id}\`${redelivery}: ${texts[outcome ?? 'pending']}`;
    });
    setCurrentDetails(`Deliveries of \`${event_id}\`:\n\n${states.join('\n')}`);
    const isExhausted = [...lines.values()].some(({ outcome }) => outcome === 'exhausted');
    if (attempts_max !== undefined || isExhausted === hasAttention) return;
    hasAttention = isExhausted;
    const value = isExhausted ? 'webhook_exhausted' : null;
    upsertSearchAttributes([{ key: SEARCH_KEYS.attention, value }]);
  };
}
