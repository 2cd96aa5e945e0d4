import { createLogger } from '../../../src/base/log';
import { startTracing } from '../../../src/base/tracing/start';
import { paymentWorkflowId } from '../../../src/domain/payment/payment';
import { useFixture } from '../../support/fixture';
import { useHook } from '../../support/hook';
import { eventually, idealPayment } from '../../support/http';
import { useService } from '../../support/service';
import { type Span, startCollector, tracedTo } from './collector';

const collector = useFixture(startCollector, ({ close }) => close());
const tracing = useFixture(async () => {
  const log = createLogger('test', 'silent');
  const started = await startTracing('test', tracedTo(collector), log);
  if (started === undefined) throw new Error('Nothing is traced.');
  return started;
});
const service = useService(() => ({ tracing }));
const hook = useHook(service);

/** Names from the request down to a span. */
function pathTo(span: Span): string[] {
  const parent = collector.spans.find(({ spanId }) => spanId === span.parentSpanId);
  return [...(parent === undefined ? [] : pathTo(parent)), span.name];
}

test('a payment is one trace from the request to its webhook, which tells nothing personal and leaves no mark in a workflow', async () => {
  const shop = await service.account();
  await hook.register(shop);
  const body = idealPayment({
    customer: { email: 'jan@example.com', first_name: 'Jan', last_name: 'Jansen' },
    metadata: { cart: 'cart-8812' },
  });
  const made = await shop.post('/v1/payments', body);
  expect(made.status).toBe(201);
  await eventually('the webhook', async () => hook.received.length > 0);
  const { account_id, key } = shop;
  const about = { account_id, livemode: false, resource_id: made.body.id, limit: 1 };
  const [event] = await service.stores.events.list(about);
  await service.temporal.workflow.getHandle(`webhook:${event?._id}`).result();
  await shop.get('/v1/nothing-of-the-kind/jan@example.com');
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
  const secrets = ['jan', 'Jansen', 'cart-8812', 'order-1001', 'shop.example', key, hook.url];
  for (const secret of secrets) expect(told).not.toContain(secret);
});
