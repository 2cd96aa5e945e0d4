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
import {
  deriveSpanId,
  deriveTraceId,
  type SpanKind,
  type SpanPosition,
  type Tracing,
  type TracingConfig,
} from './tracing';

const KINDS = {
  server: Kinds.SERVER,
  client: Kinds.CLIENT,
  internal: Kinds.INTERNAL,
} as const satisfies Record<SpanKind, Kinds>;

function createIdGenerator(random: IdGenerator) {
  const nextIds: { traceId?: string | undefined; spanId?: string | undefined } = {};
  const ids: IdGenerator = {
    generateTraceId: () => nextIds.traceId ?? random.generateTraceId(),
    generateSpanId: () => nextIds.spanId ?? random.generateSpanId(),
  };
  const withIds = <T>(traceId: string, spanId: string | undefined, make: () => T): T => {
    Object.assign(nextIds, { traceId, spanId });
    try {
      return make();
    } finally {
      Object.assign(nextIds, { traceId: undefined, spanId: undefined });
    }
  };
  return { ids, withIds };
}

/** Loads the SDK, so that it costs nothing without tracing. */
export async function startTracing(
  service: string,
  { OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_TRACES_SAMPLER_ARG }: TracingConfig,
  log: Logger,
): Promise<Tracing | undefined> {
  if (OTEL_EXPORTER_OTLP_ENDPOINT === '') return undefined;
  const [sdk, { OTLPTraceExporter }, { resourceFromAttributes }, hooks] = await Promise.all([
    import('@opentelemetry/sdk-trace-base'),
    import('@opentelemetry/exporter-trace-otlp-http'),
    import('@opentelemetry/resources'),
    import('@opentelemetry/context-async-hooks'),
  ]);
  const warn = (text: string) => log.warn({ code: text.slice(0, 200) }, 'traces are not sent');
  const silent = () => {};
  const levels = { error: warn, warn: warn, info: silent, debug: silent, verbose: silent };
  diag.setLogger(levels, DiagLogLevel.WARN);
  const { ids, withIds } = createIdGenerator(new sdk.RandomIdGenerator());
  const url = `${OTEL_EXPORTER_OTLP_ENDPOINT.replace(/\/+$/, '')}/v1/traces`;
  const provider = new sdk.BasicTracerProvider({
    resource: resourceFromAttributes({ 'service.name': `payments-${service}` }),
    spanProcessors: [new sdk.BatchSpanProcessor(new OTLPTraceExporter({ url }))],
    // All processes derive the same trace id, so a trace is complete or not sent.
    sampler: new sdk.TraceIdRatioBasedSampler(OTEL_TRACES_SAMPLER_ARG),
    idGenerator: ids,
  });
  context.setGlobalContextManager(new hooks.AsyncLocalStorageContextManager().enable());
  const tracer = provider.getTracer('payments');

  const startSpan = (name: string, kind: Kinds, position: SpanPosition | undefined): Span => {
    if (position === undefined) return tracer.startSpan(name, { kind });
    const { requestId, spanName, parentName } = position;
    const traceId = deriveTraceId(requestId);
    const spanId = spanName === undefined ? undefined : deriveSpanId(requestId, spanName);
    return withIds(traceId, spanId, () =>
      tracer.startSpan(name, { kind }, getParentContext(traceId, requestId, parentName)),
    );
  };
  return {
    span: async (name, kind, position, work) => {
      const span = startSpan(name, KINDS[kind], position);
      return await context.with(trace.setSpan(context.active(), span), async () => {
        try {
          return await work({
            name: (newName) => void span.updateName(newName),
            setAttributes: (facts) => void span.setAttributes({ ...facts }),
            fail: () => void span.setStatus({ code: SpanStatusCode.ERROR }),
          });
        } catch (error) {
          // The message may quote data of a merchant.
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

function getParentContext(traceId: string, requestId: string, parentName: string | undefined) {
  if (parentName !== undefined) {
    const spanId = deriveSpanId(requestId, parentName);
    const traceFlags = TraceFlags.SAMPLED;
    return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true });
  }
  const activeSpan = trace.getSpanContext(context.active());
  return activeSpan?.traceId === traceId ? context.active() : ROOT_CONTEXT;
}
