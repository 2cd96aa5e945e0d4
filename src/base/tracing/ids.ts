import { createHash } from 'node:crypto';

/**
 * Position of a span in the trace of a request. Every process derives it from names, so workflow
 * histories do not depend on tracing.
 */
export interface SpanPosition {
  /** API request that the trace belongs to. */
  requestId: string;
  /** Name of a span that occurs once in the trace; the span id is derived from it. */
  spanName?: string;
  /** Name of the parent; by default the active span of this process. */
  parentName?: string;
}

/** Name of the request's span. */
export const REQUEST = 'request';

/** Builds the name of the span that starts a workflow. */
export function workflowSpan(workflowId: string): string {
  return `workflow ${workflowId}`;
}

/** @returns 16 bytes in hexadecimal, as OpenTelemetry requires */
export function deriveTraceId(requestId: string): string {
  return hashText(`trace\n${requestId}`).slice(0, 32);
}

/** @returns 8 bytes in hexadecimal */
export function deriveSpanId(requestId: string, name: string): string {
  return hashText(`span\n${requestId}\n${name}`).slice(0, 16);
}

function hashText(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
