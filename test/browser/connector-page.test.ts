import { postWebhook } from '../../connectors/example/fake-bank';
import { useShop } from '../api/payout-setting';
import { makePrefix, SECRET, useExample } from '../connectors/example/world';
import { eventually } from '../support/http';
import { useService } from '../support/service';
import { look, useBrowser } from './dashboard-visit';

const prefix = makePrefix();
// A product of its own: it routes to the connector whose page is shown.
const service = useService({ live: { connectors: '', prefix }, tests: 'example=sepa_instant' });
const shop = useShop(service);
const world = useExample(service, prefix);
const browser = useBrowser();

test('the page of a connector is accessible at desktop and phone width, empty and with steps', async () => {
  const page = await (await browser.newContext()).newPage();
  const faults: string[] = [];
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error') faults.push(message.text());
  });
  await page.goto(new URL('/connectors', world.url).href);
  await page.getByRole('heading', { name: 'Nothing has happened yet' }).waitFor();
  await look(page, 'connector-empty');

  world.bank.failNext('fails_after');
  const { body } = await shop.pay();
  await eventually('the transfer', async () => world.bank.transfers.get(body.id));
  const sent = world.bank.change(body.id, 'sent');
  await postWebhook(world.url, JSON.stringify(sent), SECRET);
  world.bank.change(body.id, 'arrived', { value_date: '2026-11-26' });
  await postWebhook(world.url, '{}', 'another secret');
  await eventually('the last callback', async () => {
    await page.getByRole('link', { name: 'Reload' }).click();
    await page.waitForLoadState();
    return (await page.getByText('"completed"').count()) > 0;
  });
  await page.getByRole('heading', { name: `Payout ${body.id}` }).waitFor();
  await look(page, 'connector-steps');
  expect(faults).toEqual([]);
  await page.context().close();
});
