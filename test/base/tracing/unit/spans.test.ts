import { createLogger } from '../../../../src/base/log';
import { startTracing } from '../../../../src/base/tracing/start';
import { REQUEST, workflowSpan } from '../../../../src/base/tracing/tracing';
import { startCollector, traceTo } from '../collector';

const log = createLogger('test', 'silent');
const requestId = 'req-1';

test('spans find their parents by names, and report only the type of an error', async () => {
  const collector = await startCollector();
  const tracing = await startTracing('test', traceTo(collector), log);
  const start = { requestId, spanName: workflowSpan('payment:1') };
  await tracing?.span('POST', 'server', { requestId, spanName: REQUEST }, async (span) => {
    span.name('POST /v1/payments');
    await tracing.span('start', 'client', start, async () => {});
  });
  const step = { requestId, parentName: workflowSpan('payment:1') };
  const work = tracing?.span('step', 'internal', step, async () => {
    await tracing.span('post', 'client', undefined, async () => {});
    throw new TypeError('jan@example.com');
  });
  await expect(work).rejects.toThrow('jan@example.com');
  await tracing?.span('other', 'server', { requestId: 'req-2', spanName: REQUEST }, async () => {});
  await tracing?.close();
  await collector.close();

  const { spans } = collector;
  const above = ({ parentSpanId }: (typeof spans)[number]) =>
    spans.find(({ spanId }) => spanId === parentSpanId)?.name;
  expect(Object.fromEntries(spans.map((span) => [span.name, above(span)]))).toEqual({
    'POST /v1/payments': undefined,
    start: 'POST /v1/payments',
    step: 'start',
    post: 'step',
    other: undefined,
  });
  expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(2);
  expect(JSON.stringify(spans)).not.toContain('jan');
  expect(JSON.stringify(spans)).toContain('TypeError');
});

test('nothing is traced without a collector', async () => {
  const config = { OTEL_EXPORTER_OTLP_ENDPOINT: '', OTEL_TRACES_SAMPLER_ARG: 1 };
  expect(await startTracing('test', config, log)).toBeUndefined();
});
