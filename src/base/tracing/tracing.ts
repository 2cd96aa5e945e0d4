import { createHash } from 'node:crypto';

export interface TracingConfig {
  OTEL_EXPORTER_OTLP_ENDPOINT: string;
  OTEL_TRACES_SAMPLER_ARG: number;
}

/** Excludes data of a merchant. */
interface SpanFacts {
  'http.request.method'?: string;
  'http.route'?: string;
  'http.response.status_code'?: number;
  'temporal.workflow.id'?: string;
  'temporal.workflow.type'?: string;
  'temporal.activity.type'?: string;
  'temporal.attempt'?: number;
  'webhook.outcome'?: string;
}

interface OpenSpan {
  name(name: string): void;
  setAttributes(facts: SpanFacts): void;
  fail(): void;
}

export type SpanKind = 'server' | 'client' | 'internal';

export interface Tracing {
  /** Without a position, the parent is the active span. */
  span<T>(
    name: string,
    kind: SpanKind,
    position: SpanPosition | undefined,
    work: (span: OpenSpan) => Promise<T>,
  ): Promise<T>;
  close(): Promise<void>;
}

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
