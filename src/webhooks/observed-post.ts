import { Histogram, type Registry } from 'prom-client';
import { describeMetric } from '../base/metrics';
import type { Tracing } from '../base/tracing/tracing';
import type { PostWebhook } from './post';
import { isAcknowledged } from './post-result';

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
    const answered = isAcknowledged(result) ? 'delivered' : 'refused';
    const outcome = result.outcome === 'error' ? result.kind : answered;
    attempts.observe({ outcome }, result.durationMs / 1_000);
    return result;
  };
}

/** The span must not contain the merchant's address. */
export function tracePost(tracing: Tracing | undefined, post: PostWebhook): PostWebhook {
  if (tracing === undefined) return post;
  return (attempt) =>
    tracing.span('post webhook', 'client', undefined, async (span) => {
      const result = await post(attempt);
      if (result.outcome === 'error') {
        span.setAttributes({ 'webhook.outcome': result.kind });
        span.fail();
      } else {
        span.setAttributes({
          'webhook.outcome': 'response',
          'http.response.status_code': result.status,
        });
        if (result.status >= 300) span.fail();
      }
      return result;
    });
}
