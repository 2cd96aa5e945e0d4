import { z } from 'zod';
import type { Place } from './ids';

/** Variables that switch traces on; the exporter reads others of OpenTelemetry's by itself. */
export const TRACING_VARIABLES = {
  OTEL_EXPORTER_OTLP_ENDPOINT: z.union([z.literal(''), z.url()]).default(''),
  OTEL_TRACES_SAMPLER_ARG: z.coerce.number().min(0).max(1).default(1),
};

export interface TracingConfig {
  OTEL_EXPORTER_OTLP_ENDPOINT: string;
  OTEL_TRACES_SAMPLER_ARG: number;
}

/** Facts that a span may tell: names and numbers of ours, and nothing that a merchant sent. */
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

/** Span that is open. */
export interface OpenSpan {
  name(name: string): void;
  tell(facts: SpanFacts): void;
  fail(): void;
}

export type SpanKind = 'server' | 'client' | 'internal';

export interface Tracing {
  /** Does a work within a span; without a place it stands under the one that is open. */
  span<T>(
    name: string,
    kind: SpanKind,
    place: Place | undefined,
    work: (span: OpenSpan) => Promise<T>,
  ): Promise<T>;
  /** Sends what is left. */
  close(): Promise<void>;
}
