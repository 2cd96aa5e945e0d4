import { createHash } from 'node:crypto';

/**
 * Place of a span in the trace of a request. It follows from names that every process knows, so no
 * workflow carries it: its history is the same whether traces are made or not.
 */
export interface Place {
  /** Request to the API from which all of the trace follows. */
  requestId: string;
  /** Name of the span within the trace; it is one of many when not given. */
  own?: string;
  /** Name of the span above it; the one that is open in this process when not given. */
  above?: string;
}

/** Name of the span of the request itself. */
export const REQUEST = 'request';

/** Name of the span in which a workflow is started. */
export function workflowSpan(workflowId: string): string {
  return `workflow ${workflowId}`;
}

/** 16 bytes in hexadecimal, as OpenTelemetry has them. */
export function traceIdOf(requestId: string): string {
  return hashOf(`trace\n${requestId}`).slice(0, 32);
}

/** 8 bytes in hexadecimal. */
export function spanIdOf(requestId: string, name: string): string {
  return hashOf(`span\n${requestId}\n${name}`).slice(0, 16);
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
