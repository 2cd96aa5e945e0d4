import { Histogram, type Registry } from 'prom-client';
import type { PostWebhook } from '../webhooks/post';
import type { PostResult } from '../webhooks/post-result';

/** Seconds; an attempt ends after ten. */
const BUCKETS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Counts and times what a worker posts, by what came of it. */
export function meteredPost(registry: Registry, post: PostWebhook): PostWebhook {
  const attempts = new Histogram({
    name: 'payments_webhook_attempt_duration_seconds',
    help: 'Attempts to deliver a webhook, with the time that each took.',
    labelNames: ['outcome'] as const,
    buckets: BUCKETS,
    registers: [registry],
  });
  return async (webhook) => {
    const result = await post(webhook);
    attempts.observe({ outcome: outcomeOf(result) }, result.durationMs / 1_000);
    return result;
  };
}

/** Word for an attempt: `delivered`, `refused` by a status, or the kind of fault. */
function outcomeOf(result: PostResult): string {
  if (result.outcome === 'error') return result.kind;
  return result.status >= 200 && result.status < 300 ? 'delivered' : 'refused';
}
