import { buildEventSchema, EVENT_TYPES, type EventType } from '../../src/domain/webhook/event';
import { createEncrypter } from '../../src/encryption/encrypter';
import { followKeyFile } from '../../src/encryption/service-keys';
import { sendTestEvent, type TestEventDeps } from '../../src/service/events/test-event';
import { createEndpointLimits } from '../../src/webhooks/endpoint-limits';
import { postWebhook } from '../../src/webhooks/post';
import { verifySignature } from '../../src/webhooks/signature';
import { useProvisioning } from '../cli/cli';
import { gate } from '../support/gate';
import { useInbox } from '../support/hook';
import { eventually } from '../support/http';

const service = useProvisioning();
const inbox = useInbox();
let deps: TestEventDeps;
let account_id: string;
let secret: string;

beforeAll(async () => {
  account_id = (await service.account()).account_id;
  const place = [account_id, '--env', 'sandbox', '--url', inbox.url];
  secret = Object(await service.json('webhook', 'set', ...place)).signing_secret;
  deps = {
    stores: service.stores,
    encrypter: createEncrypter(followKeyFile(service.env['KEYS_FILE'] ?? '').seal),
    limits: createEndpointLimits({ slots: 20 }),
    allowPrivate: true,
    post: postWebhook,
    audit: async () => {},
    now: () => new Date(),
  };
});

const send = (type: EventType = 'payment.settled', livemode = false) =>
  sendTestEvent(deps, { account_id, livemode, type, request_id: 'req-1' });

test.each(EVENT_TYPES)('a test of %s is signed, has data.test, and is stored', async (type) => {
  const row = await send(type);
  expect(row).toMatchObject({ outcome: 'delivered', status_code: 200, response_excerpt: 'thanks' });
  const [{ headers, body } = { headers: {}, body: '' }] = inbox.received;
  expect(headers['service-event-type']).toBe(type);
  const header = String(headers['service-signature']);
  expect(verifySignature({ header, body, secret, now: Date.now() / 1_000 })).toBe(true);
  const event = buildEventSchema(type).strict().parse(JSON.parse(body));
  expect(event.data).toMatchObject({ test: true });
  expect(await service.json('event', 'show', event.id)).toMatchObject({
    delivery: { status: 'delivered', attempts: 1, next_attempt_at: null },
    attempts: [{ attempt: 1, status_code: 200, response_excerpt: 'thanks' }],
  });
});

test('a refused test event is never tried again', async () => {
  inbox.answer.status = 500;
  const { event_id, outcome, status_code } = await send();
  expect({ outcome, status_code }).toEqual({ outcome: 'failed', status_code: 500 });
  expect(await service.stores.deliveries.forEvents([event_id])).toMatchObject([
    {
      endpoint_id: expect.stringMatching(/^we_/),
      ...{ status: 'exhausted', attempts: 1, next_attempt_at: null, run: 0 },
    },
  ]);
  const since = ['--account', account_id, '--env', 'sandbox', '--since', '2020-01-01T00:00:00Z'];
  expect(await service.json('event', 'redeliver', ...since, '--dry-run')).toMatchObject({
    found: 0,
  });
  const overdue = [];
  for await (const row of service.stores.deliveries.overdue('9999')) overdue.push(row);
  expect(overdue.map((row) => row.event_id)).not.toContain(event_id);
});

test('a process that dies before the answer leaves the event without an attempt', async () => {
  const died = { ...deps, post: () => Promise.reject(new Error('killed')) };
  const type = 'payout.sent';
  await expect(
    sendTestEvent(died, { account_id, livemode: false, type, request_id: 'req-1' }),
  ).rejects.toThrow('killed');
  const { events, deliveries } = service.stores;
  const [event] = await events.list({ account_id, livemode: false, limit: 1 });
  expect(event?.type).toBe(type);
  expect(await deliveries.forEvents([event?._id ?? ''])).toMatchObject([
    { status: 'exhausted', attempts: 0 },
  ]);
});

test('refuses a test without an endpoint, and a second one while the first is sent', async () => {
  await expect(send('payment.settled', true)).rejects.toMatchObject({ code: 'webhook_not_set' });
  const patient = { ...deps, limits: createEndpointLimits({ slots: 20 }) };
  const request = { account_id, livemode: false, type: 'payment.failed', request_id: 'r' } as const;
  const sendTwo = async () => {
    const { opened, release } = gate();
    inbox.answer.hold = opened;
    const both = [sendTestEvent(patient, request), sendTestEvent(patient, request)];
    await Promise.race(both).catch(() => {});
    release();
    return await Promise.allSettled(both);
  };
  // On a busy machine the answer may be held for longer than a test waits.
  const settled = await eventually('an answer in time', async () => {
    const both = await sendTwo();
    return both.every((one) => one.status === 'rejected' || one.value.error === null) && both;
  });
  expect(settled).toEqual(
    expect.arrayContaining([
      { status: 'rejected', reason: expect.objectContaining({ code: 'endpoint_busy' }) },
      { status: 'fulfilled', value: expect.objectContaining({ outcome: 'delivered' }) },
    ]),
  );
});
