import { useInbox } from '../support/hook';
import { eventually, idealPayment } from '../support/http';
import { type Account, useService } from '../support/service';
import { sendClock } from './clock-setting';

const service = useService();
const inbox = useInbox();

const PATH = '/v1/webhook-endpoints';

const advance = (shop: Account, by: string) => sendClock(shop, { advance: by });

/** Sends an event, and waits until it was attempted. */
async function attempt(shop: Account, attempts = 1): Promise<void> {
  const { body: payment } = await shop.post('/v1/payments', idealPayment());
  await eventually(`${attempts} attempts`, async () => {
    const { body } = await shop.get(`/v1/events?resource_id=${payment.id}`);
    return body.data[0]?.deliveries[0]?.attempts >= attempts;
  });
}

/** An endpoint that fails, with an event that was attempted twice. */
async function openFailing() {
  const shop = await service.account();
  const { body: endpoint } = await shop.post(PATH, { url: inbox.url });
  inbox.answer.status = 500;
  const { body: payment } = await shop.post('/v1/payments', idealPayment());
  await eventually('the first attempt', async () => {
    const { body } = await shop.get(`/v1/events?resource_id=${payment.id}`);
    return body.data[0]?.deliveries[0]?.attempts === 1;
  });
  const read = async () => (await shop.get(`${PATH}/${endpoint.id}`)).body;
  const stored = () => service.stores.endpoints.get(shop.account_id, false);
  expect((await stored())?.failing_since).toBeUndefined();
  await advance(shop, 'PT1M');
  await eventually('the second attempt', async () => (await stored())?.failing_since !== undefined);
  return { shop, id: endpoint.id, read, stored };
}

test('an endpoint that only failed for five days is disabled, and its merchant can enable it', async () => {
  const { shop, id, read, stored } = await openFailing();
  await advance(shop, 'P4D');
  await attempt(shop);
  expect((await read()).status).toBe('enabled');
  await advance(shop, 'P1D');
  await attempt(shop);
  await eventually('it is disabled', async () => (await read()).status === 'disabled');
  expect(await read()).toMatchObject({ status: 'disabled', disabled_reason: 'failing' });
  const lines = await service
    .collection('audit_log')
    .find({ account_id: shop.account_id, act: 'webhook.disabled' })
    .toArray();
  expect(lines).toMatchObject([{ target: id, actor: { door: 'service' } }]);
  inbox.answer.status = 200;
  await shop.send('PATCH', `${PATH}/${id}`, { status: 'enabled' });
  expect(await read()).toMatchObject({ status: 'enabled', disabled_reason: null });
  expect((await stored())?.failing_since).toBeUndefined();
  await attempt(shop);
});

test('one success begins the days again', async () => {
  const { shop, read, stored } = await openFailing();
  await advance(shop, 'P4D');
  inbox.answer.status = 200;
  await attempt(shop);
  await eventually('the success', async () => (await stored())?.failing_since === undefined);
  inbox.answer.status = 500;
  await advance(shop, 'P2D');
  await attempt(shop);
  expect((await read()).status).toBe('enabled');
});
