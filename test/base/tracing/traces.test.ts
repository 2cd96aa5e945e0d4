import { json } from 'node:stream/consumers';
import { createLogger } from '../../../src/base/log';
import { startTracing } from '../../../src/base/tracing/start';
import type { Tracing } from '../../../src/base/tracing/tracing';
import { paymentWorkflowId } from '../../../src/domain/payment/payment';
import { createEncrypter } from '../../../src/encryption/encrypter';
import { makeSigningSecret } from '../../../src/service/endpoints';
import { endpointOwner } from '../../../src/store/endpoints';
import { call, eventually, idealPayment } from '../../support/http';
import { type Service, startService } from '../../support/service';
import { type Receiver, receiveHttp } from '../../webhooks/receiver';
import { type Span, startCollector, tracedTo } from './collector';

const posts: unknown[] = [];
let collector: Awaited<ReturnType<typeof startCollector>>;
let receiver: Receiver;
let tracing: Tracing;
let service: Service;

beforeAll(async () => {
  collector = await startCollector();
  receiver = await receiveHttp(async (request, response) => {
    posts.push(await json(request));
    response.writeHead(204).end();
  });
  const started = await startTracing('test', tracedTo(collector), createLogger('test', 'silent'));
  if (started === undefined) throw new Error('Nothing is traced.');
  tracing = started;
  service = await startService({ tracing });
});
afterAll(async () => {
  await service?.stop();
  await receiver?.close();
  await collector?.close();
});

/** Names from the request down to a span. */
function pathTo(span: Span): string[] {
  const parent = collector.spans.find(({ spanId }) => spanId === span.parentSpanId);
  return [...(parent === undefined ? [] : pathTo(parent)), span.name];
}

test('a payment is one trace from the request to its webhook, which tells nothing personal and leaves no mark in a workflow', async () => {
  const { account_id, key } = await service.account();
  await service.stores.endpoints.set({
    account_id,
    livemode: false,
    url: receiver.url,
    sealed: await createEncrypter(service.keys.seal).encrypt(
      makeSigningSecret(),
      endpointOwner(account_id, false),
    ),
    now: new Date(),
  });
  const body = idealPayment({
    customer: { email: 'jan@example.com', first_name: 'Jan', last_name: 'Jansen' },
    metadata: { cart: 'cart-8812' },
  });
  const made = await call(service.url, 'POST', '/v1/payments', { key, body });
  expect(made.status).toBe(201);
  await eventually('the webhook', async () => posts.length > 0);
  const about = { account_id, livemode: false, resource_id: made.body.id, limit: 1 };
  const [event] = await service.stores.events.list(about);
  await service.temporal.workflow.getHandle(`webhook:${event?._id}`).result();
  await call(service.url, 'GET', '/v1/nothing-of-the-kind/jan@example.com', { key });
  const workflow = service.temporal.workflow.getHandle(paymentWorkflowId(made.body.id));
  const { events } = await workflow.fetchHistory();
  const begun = events?.[0]?.workflowExecutionStartedEventAttributes;
  expect(Object.keys(begun?.header?.fields ?? {})).toEqual([]);
  // What is left is sent at the end.
  await tracing.close();

  const { spans } = collector;
  const root = spans.find(({ name }) => name === 'POST /v1/payments');
  const whole = spans.filter(({ traceId }) => traceId === root?.traceId);
  expect(whole.filter(({ parentSpanId }) => parentSpanId === undefined)).toEqual([root]);
  const paths = whole.map((span) => pathTo(span).join(' > '));
  const request = 'POST /v1/payments > start payment';
  expect(paths).toContain(`${request} > openPayment`);
  const post = paths.find((path) => path.endsWith('post webhook'));
  expect(post).toMatch(
    /^POST \/v1\/payments > start payment > \w+ > start webhookDelivery > (firstAttempt|deliverWebhook) > post webhook$/,
  );

  const told = JSON.stringify(spans);
  const secrets = ['jan', 'Jansen', 'cart-8812', 'order-1001', 'shop.example', key, receiver.url];
  for (const secret of secrets) expect(told).not.toContain(secret);
});
