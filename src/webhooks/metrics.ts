import { Histogram, type Registry } from 'prom-client';
import { describeMetric } from '../base/metrics';
import type { PostWebhook } from './post';
import { isAcknowledged, type PostResult } from './post-result';

/** Seconds; an attempt ends after ten. */
const BUCKETS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export function meterPost(registry: Registry, post: PostWebhook): PostWebhook {
  const attempts = new Histogram({
    ...describeMetric('payments_webhook_attempt_duration_seconds'),
    buckets: BUCKETS,
    registers: [registry],
  });
  return async (webhook) => {
    const result = await post(webhook);
    attempts.observe({ outcome: getOutcome(result) }, result.durationMs / 1_000);
    return result;
  };
}

function getOutcome(result: PostResult): string {
  if (result.outcome === 'error') return result.kind;
  return isAcknowledged(result) ? 'delivered' : 'refused';
}
