import type { SpanPosition } from './ids';

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

export interface OpenSpan {
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
