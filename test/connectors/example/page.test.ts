import { request as httpRequest } from 'node:http';
import { postWebhook } from '../../../connectors/example/fake-bank';
import { useShop } from '../../api/payout-setting';
import { eventually } from '../../support/http';
import { useService } from '../../support/service';
import { makePrefix, SECRET, useExample } from './world';

const prefix = makePrefix();
const service = useService({
  live: { connectors: '', prefix },
  tests: 'example=sepa_credit_transfer|sepa_instant',
});
const shop = useShop(service);
const world = useExample(service, prefix);
const live = useExample(service, `${prefix}-live`, 'live');

/** Gets the page; `fetch` would not send another `Host`. */
function get(headers: Record<string, string> = {}, of = world, path = '/connectors') {
  return new Promise<{ status: number | undefined; text: string; policy: unknown }>(
    (resolve, reject) => {
      const request = httpRequest(new URL(path, of.url), { headers }, (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => (text += chunk));
        response.on('end', () => {
          const policy = response.headers['content-security-policy'];
          resolve({ status: response.statusCode, text, policy });
        });
      });
      request.on('error', reject).end();
    },
  );
}

/** Text of the page, without its elements. */
async function read(): Promise<string> {
  const { text } = await get();
  return text
    .replace(/<[^>]+>/g, ' ')
    .replaceAll('&quot;', '"')
    .replace(/\s+/g, ' ');
}

test('before the first instruction the page says what to do', async () => {
  const { status, policy } = await get();
  expect([status, policy]).toEqual([200, expect.stringContaining("default-src 'none'")]);
  expect(await read()).toContain('Nothing has happened yet');
});

test('it shows instruction, bank traffic, answer and callback of a payout, and nothing of the recipient', async () => {
  const { body } = await shop.pay({ reference: 'Salary 11/2026' });
  await eventually('the transfer', async () => world.bank.transfers.get(body.id));
  const sent = world.bank.change(body.id, 'sent');
  await postWebhook(world.url, JSON.stringify(sent), SECRET);
  await postWebhook(world.url, '{}', 'another secret');
  const text = await eventually('the callback', async () => {
    const shown = await read();
    const isWhole = shown.includes('webhook POST') && shown.includes('"outcome": "submitted"');
    return isWhole && shown;
  });
  const reference = String(world.bank.transfers.get(body.id)?.id);
  for (const part of [
    `Payout ${body.id}`,
    `"payout_id": "${body.id}"`,
    '"method": "sepa_instant"',
    'POST /transfers → 201',
    '"state": "queued"',
    `"outcome": "submitted", "bank_reference": "${reference}"`,
    `webhook POST /webhooks → received Sent { "id": "${sent.id}"`,
    '"name": "sent"',
    `"callback_id": "${sent.id}"`,
    'Webhooks that were refused',
    'WebhookRefused 401',
  ]) {
    expect(text).toContain(part);
  }
  expect(text).toContain('"to": { "name": "•••", "iban": "•••" }');
  for (const hidden of ['Ada', 'Lovelace', 'DE8937', 'Salary', SECRET, 'Bearer']) {
    expect((await get()).text).not.toContain(hidden);
  }
});

test('a failure is shown by its name', async () => {
  world.bank.failNext('fails_after');
  await shop.pay();
  await eventually('the failure', async () => (await read()).includes('failed: BankFailure'));
  expect(await read()).toContain('POST /transfers → The bank answered 500.');
});

test.each([
  ['of another machine, behind a proxy', { 'X-Forwarded-For': '203.0.113.7' }],
  ['of a page that has another name for this machine', { Host: 'attacker.example' }],
])('a request %s finds no page', async (_whose, headers) => {
  expect(await get(headers)).toMatchObject({ status: 404 });
  expect(await get(headers, world, '/connectors/page.css')).toMatchObject({ status: 404 });
});

test('on live there is no page, and the answer that says so is in no frame', async () => {
  const policy = "default-src 'none'; frame-ancestors 'none'";
  expect(await get({}, live)).toMatchObject({ status: 404, policy });
});
