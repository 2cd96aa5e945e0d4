import { createLogger } from '../../../src/base/log';
import { startTracing } from '../../../src/base/tracing/start';
import { paymentWorkflowId } from '../../../src/domain/payment/payment';
import { eventually } from '../../support/eventually';
import { useFixture } from '../../support/fixture';
import { useHook } from '../../support/hook';
import { idealPayment } from '../../support/http';
import { useService } from '../../support/service';
import { type Span, startCollector, traceTo } from './collector';

const collector = useFixture(startCollector, ({ close }) => close());
const tracing = useFixture(async () => {
  const log = createLogger('test', 'silent');
  const started = await startTracing('test', traceTo(collector), log);
  if (started === undefined) throw new Error('Nothing is traced.');
  return started;
});
// A product of its own: its API and its worker send traces.
const service = useService(() => ({ tracing }));
const hook = useHook(service);

/** Lists the names from the request down to a span. */
function buildPath(span: Span): string[] {
  const parent = collector.spans.find(({ spanId }) => spanId === span.parentSpanId);
  return [...(parent === undefined ? [] : buildPath(parent)), span.name];
}

test('a payment is one trace from the request to its webhook, without personal data and without headers of a workflow', async () => {
  const shop = await service.account();
  await hook.register(shop);
  const body = idealPayment({
    customer: { email: 'jan@example.com', first_name: 'Jan', last_name: 'Jansen' },
    metadata: { cart: 'cart-8812' },
  });
  const created = await shop.post('/v1/payments', body);
  expect(created.status).toBe(201);
  await eventually('the webhook', async () => hook.received.length > 0);
  const { account_id, key } = shop;
  const about = { account_id, livemode: false, resource_id: created.body.id, limit: 1 };
  const [event] = await service.stores.events.list(about);
  await service.temporal.workflow.getHandle(`webhook:${event?._id}`).result();
  await shop.get('/v1/nothing-of-the-kind/jan@example.com');
  const workflow = service.temporal.workflow.getHandle(paymentWorkflowId(created.body.id));
  const { events } = await workflow.fetchHistory();
  const started = events?.[0]?.workflowExecutionStartedEventAttributes;
  expect(Object.keys(started?.header?.fields ?? {})).toEqual([]);
  // The last spans are sent at the end.
  await tracing.close();

  const { spans } = collector;
  const root = spans.find(({ name }) => name === 'POST /v1/payments');
  const whole = spans.filter(({ traceId }) => traceId === root?.traceId);
  expect(whole.filter(({ parentSpanId }) => parentSpanId === undefined)).toEqual([root]);
  const paths = whole.map((span) => buildPath(span).join(' > '));
  const request = 'POST /v1/payments > start payment';
  expect(paths).toContain(`${request} > openPayment`);
  const post = paths.find((path) => path.endsWith('post webhook'));
  expect(post).toMatch(
    /^POST \/v1\/payments > start payment > \w+ > start webhookDelivery > (firstAttempt|deliverWebhook) > post webhook$/,
  );

  const sent = JSON.stringify(spans);
  const secrets = ['jan', 'Jansen', 'cart-8812', 'order-1001', 'shop.example', key, hook.url];
  for (const secret of secrets) expect(sent).not.toContain(secret);
});
