import type { Tracing } from '../base/tracing/tracing';
import type { PostWebhook } from './post';

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
