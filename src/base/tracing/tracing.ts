import type { SpanPosition } from './ids';

/** Variables of OpenTelemetry; its exporter reads others directly. */
export interface TracingConfig {
  OTEL_EXPORTER_OTLP_ENDPOINT: string;
  OTEL_TRACES_SAMPLER_ARG: number;
}

/** Allowed attributes of a span: our names and numbers, never a merchant's data. */
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
  /** Runs work in a span; without a position, the parent is the active span. */
  span<T>(
    name: string,
    kind: SpanKind,
    position: SpanPosition | undefined,
    work: (span: OpenSpan) => Promise<T>,
  ): Promise<T>;
  /** Sends the remaining spans. */
  close(): Promise<void>;
}
