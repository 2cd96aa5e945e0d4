import type { PostWebhook } from '../webhooks/post';
import type { Tracing } from './tracing';

/** Posts within a span of the step that posts; it tells no address, since that is the merchant's. */
export function tracedPost(tracing: Tracing | undefined, post: PostWebhook): PostWebhook {
  if (tracing === undefined) return post;
  return (attempt) =>
    tracing.span('post webhook', 'client', undefined, async (span) => {
      const result = await post(attempt);
      if (result.outcome === 'error') {
        span.tell({ 'webhook.outcome': result.kind });
        span.fail();
      } else {
        span.tell({ 'webhook.outcome': 'response', 'http.response.status_code': result.status });
        if (result.status >= 300) span.fail();
      }
      return result;
    });
}
