import { createHash } from 'node:crypto';

/** Place of a span, derived from names, so that histories do not depend on tracing. */
export interface SpanPosition {
  requestId: string;
  spanName?: string;
  parentName?: string;
}

export const REQUEST = 'request';

export function workflowSpan(workflowId: string): string {
  return `workflow ${workflowId}`;
}

/** @returns 16 bytes in hex */
export function deriveTraceId(requestId: string): string {
  return hashText(`trace\n${requestId}`).slice(0, 32);
}

/** @returns 8 bytes in hex */
export function deriveSpanId(requestId: string, name: string): string {
  return hashText(`span\n${requestId}\n${name}`).slice(0, 16);
}

function hashText(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
