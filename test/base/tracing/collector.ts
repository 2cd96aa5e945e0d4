import { json } from 'node:stream/consumers';
import { z } from 'zod';
import { type Receiver, receiveHttp } from '../../webhooks/receiver';

const Span = z.looseObject({
  traceId: z.string(),
  spanId: z.string(),
  parentSpanId: z.string().optional(),
  name: z.string(),
});
export type Span = z.infer<typeof Span>;

const Exported = z.object({
  resourceSpans: z.array(z.object({ scopeSpans: z.array(z.object({ spans: z.array(Span) })) })),
});

/** Starts a collector of OpenTelemetry's protocol by HTTP, with the spans that it receives. */
export async function startCollector(): Promise<Receiver & { spans: Span[] }> {
  const spans: Span[] = [];
  const receiver = await receiveHttp(async (request, response) => {
    const { resourceSpans } = Exported.parse(await json(request));
    spans.push(...resourceSpans.flatMap((each) => each.scopeSpans.flatMap((scope) => scope.spans)));
    response.writeHead(200, { 'Content-Type': 'application/json' }).end('{}');
  });
  return { ...receiver, spans };
}

/** Builds settings that trace everything to a collector. */
export function traceTo({ port }: Receiver) {
  return {
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}/`,
    OTEL_TRACES_SAMPLER_ARG: 1,
  };
}
