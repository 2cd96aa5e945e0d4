import {
  context,
  DiagLogLevel,
  diag,
  SpanKind as Kinds,
  ROOT_CONTEXT,
  type Span,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api';
import type { IdGenerator } from '@opentelemetry/sdk-trace-base';
import type { Logger } from '../log';
import { type Place, spanIdOf, traceIdOf } from './ids';
import type { OpenSpan, SpanKind, Tracing, TracingConfig } from './tracing';

const KINDS = {
  server: Kinds.SERVER,
  client: Kinds.CLIENT,
  internal: Kinds.INTERNAL,
} as const satisfies Record<SpanKind, Kinds>;

/** Gives ids that are set just before a span is made, and random ones otherwise. */
function settableIds(random: IdGenerator) {
  const next: { traceId?: string | undefined; spanId?: string | undefined } = {};
  const ids: IdGenerator = {
    generateTraceId: () => next.traceId ?? random.generateTraceId(),
    generateSpanId: () => next.spanId ?? random.generateSpanId(),
  };
  const withIds = <T>(traceId: string, spanId: string | undefined, make: () => T): T => {
    Object.assign(next, { traceId, spanId });
    try {
      return make();
    } finally {
      Object.assign(next, { traceId: undefined, spanId: undefined });
    }
  };
  return { ids, withIds };
}

/**
 * Sends spans to the collector that the environment names, in bunches, beside the work. The SDK is
 * loaded here, so that it costs nothing where there are no traces.
 */
export async function openTelemetry(
  service: string,
  { OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_TRACES_SAMPLER_ARG }: TracingConfig,
  log: Logger,
): Promise<Tracing> {
  const [sdk, { OTLPTraceExporter }, { resourceFromAttributes }, hooks] = await Promise.all([
    import('@opentelemetry/sdk-trace-base'),
    import('@opentelemetry/exporter-trace-otlp-http'),
    import('@opentelemetry/resources'),
    import('@opentelemetry/context-async-hooks'),
  ]);
  const tell = (text: string) => log.warn({ code: text.slice(0, 200) }, 'traces are not sent');
  const silent = () => {};
  const levels = { error: tell, warn: tell, info: silent, debug: silent, verbose: silent };
  diag.setLogger(levels, DiagLogLevel.WARN);
  const { ids, withIds } = settableIds(new sdk.RandomIdGenerator());
  const url = `${OTEL_EXPORTER_OTLP_ENDPOINT.replace(/\/+$/, '')}/v1/traces`;
  const provider = new sdk.BasicTracerProvider({
    resource: resourceFromAttributes({ 'service.name': `payments-${service}` }),
    spanProcessors: [new sdk.BatchSpanProcessor(new OTLPTraceExporter({ url }))],
    // By the trace's id, which all processes derive alike, so that a trace is sent whole or not.
    sampler: new sdk.TraceIdRatioBasedSampler(OTEL_TRACES_SAMPLER_ARG),
    idGenerator: ids,
  });
  context.setGlobalContextManager(new hooks.AsyncLocalStorageContextManager().enable());
  const tracer = provider.getTracer('payments');

  const begin = (name: string, kind: Kinds, place: Place | undefined): Span => {
    if (place === undefined) return tracer.startSpan(name, { kind });
    const { requestId, own, above } = place;
    const traceId = traceIdOf(requestId);
    const spanId = own === undefined ? undefined : spanIdOf(requestId, own);
    return withIds(traceId, spanId, () =>
      tracer.startSpan(name, { kind }, contextAbove(traceId, requestId, above)),
    );
  };
  return {
    span: async (name, kind, place, work) => {
      const span = begin(name, KINDS[kind], place);
      return await context.with(trace.setSpan(context.active(), span), async () => {
        try {
          return await work(openSpan(span));
        } catch (error) {
          // Without its text, which may quote what a merchant sent.
          const { name: errorName } = error instanceof Error ? error : { name: 'unknown' };
          span.setStatus({ code: SpanStatusCode.ERROR, message: errorName });
          throw error;
        } finally {
          span.end();
        }
      });
    },
    close: () => provider.shutdown(),
  };
}

/** Context under the named span, or under the one that is open if it is of the same trace. */
function contextAbove(traceId: string, requestId: string, above: string | undefined) {
  if (above !== undefined) {
    const spanId = spanIdOf(requestId, above);
    const traceFlags = TraceFlags.SAMPLED;
    return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true });
  }
  const open = trace.getSpanContext(context.active());
  return open?.traceId === traceId ? context.active() : ROOT_CONTEXT;
}

function openSpan(span: Span): OpenSpan {
  return {
    name: (name) => void span.updateName(name),
    tell: (facts) => void span.setAttributes({ ...facts }),
    fail: () => void span.setStatus({ code: SpanStatusCode.ERROR }),
  };
}
