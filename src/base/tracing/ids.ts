import { createHash } from 'node:crypto';

/**
 * Position of a span in the trace of a request, derived from names, so that workflow histories do
 * not depend on tracing.
 */
export interface SpanPosition {
  requestId: string;
  spanName?: string;
  /** Name of the parent; by default the active span of this process. */
  parentName?: string;
}

export const REQUEST = 'request';

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
