import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { example } from '../../../connectors/example/example';
import { postWebhook, startFakeBank } from '../../../connectors/example/fake-bank';
import { startConnector } from '../../../connectors/kit/connector';
import { REPORT_MS } from '../../../src/domain/banks/capabilities';
import { useShop } from '../../api/payout-setting';
import { collectNoise, look, useBrowser } from '../../browser/dashboard-visit';
import { eventually, retryUntilDone } from '../../support/eventually';
import { useFixture } from '../../support/fixture';
import { useService } from '../../support/service';
import { beginPayout } from '../begin-payout';
import { connectConnector } from '../process';

const SECRET = 'secret-of-the-example-bank';
const prefix = `example-${randomUUID().slice(0, 8)}`;
const ROUTES = 'example=sepa_credit_transfer|sepa_instant';
// A product of its own: its payouts in EUR go to the example.
const service = useService({ live: { connectors: '', prefix }, tests: ROUTES });
const shop = useShop(service);

/** Starts the example connector between the product and a small bank. */
async function startExample(environment: 'sandbox' | 'live') {
  const { database, keysDir } = service;
  const bank = await startFakeBank(SECRET);
  // Each has a name, and so a database, of its own.
  const name = environment === 'live' ? 'example-live' : 'example';
  const { config, own } = await connectConnector(name, {
    ...{ database, prefix, keysDir, environment },
    settings: { EXAMPLE_API_URL: bank.url, EXAMPLE_KEY_FILE: SECRET },
  });
  const { poll } = example;
  const definition = { ...example, ...(poll && { poll: { ...poll, seconds: 0.1 } }) };
  const connector = await startConnector(definition, config, own);
  connector.finished.catch(() => undefined);
  const db = own.mongo.db(`${database}_${name}`);
  return {
    ...{ bank, connector, own, db, startedAt: Date.now(), url: String(connector.url) },
    stop: async () => {
      await connector.stop();
      await retryUntilDone(() => db.dropDatabase());
      await own.close();
      await bank.stop();
    },
  };
}

type Example = Awaited<ReturnType<typeof startExample>>;
const stop = (opened: Example) => opened.stop();
const world = useFixture(() => startExample('sandbox'), stop);
const live = useFixture(() => startExample('live'), stop);

/** Waits until a payout has one of these statuses. */
const becomes = (id: string, ...statuses: string[]) =>
  eventually(`a payout that is ${statuses}`, async () => {
    const payout = await service.stores.payouts.get(id);
    return payout !== null && statuses.includes(payout.status) && payout;
  });
const atBank = (id: string) => eventually('a transfer', async () => world.bank.transfers.get(id));
/** Pays, and waits for the transfer at the bank. */
const payAtBank = async (changes: object = {}): Promise<string> => {
  const id = await beginPayout(service, shop, changes);
  await atBank(id);
  return id;
};

describe('the page of a connector', () => {
  const browser = useBrowser();
  /** Opens it in a browser, in which it is accessible, and nothing fails. */
  async function lookAt(heading: string, name: string): Promise<void> {
    const page = await (await browser.newContext()).newPage();
    const noise = collectNoise(page);
    await page.goto(new URL('/connectors', world.url).href);
    await page.getByRole('link', { name: 'Reload' }).click();
    await page.getByRole('heading', { name: heading }).waitFor();
    await look(page, name);
    expect(noise).toEqual([]);
    await page.context().close();
  }

  /** Gets the page; `fetch` would not send another `Host`. */
  async function get(headers: Record<string, string> = {}, { url } = world, path = '/connectors') {
    const request = httpRequest(new URL(path, url), { headers }).end();
    const [response]: IncomingMessage[] = await once(request, 'response');
    if (response === undefined) throw new Error('There is no answer.');
    const { statusCode: status, headers: answered } = response;
    const policy = answered['content-security-policy'];
    return { status, policy, text: await text(response) };
  }

  /** Text of the page, without its elements. */
  async function read(): Promise<string> {
    return (await get()).text
      .replace(/<[^>]+>/g, ' ')
      .replaceAll('&quot;', '"')
      .replace(/\s+/g, ' ');
  }

  test('says what to do before the first instruction', async () => {
    const { status, policy } = await get();
    expect([status, policy]).toEqual([200, expect.stringContaining("default-src 'none'")]);
    expect(await read()).toContain('Nothing has happened yet');
    await lookAt('Nothing has happened yet', 'connector-empty');
  });

  test('shows instruction, traffic, answer and callback of a payout, and nothing of the recipient', async () => {
    const id = await payAtBank({ reference: 'Salary 11/2026' });
    const sent = world.bank.change(id, 'sent');
    await postWebhook(world.url, JSON.stringify(sent), SECRET);
    await postWebhook(world.url, '{}', 'another secret');
    const page = await eventually('the callback', async () => {
      const shown = await read();
      const isWhole = shown.includes('webhook POST') && shown.includes('"outcome": "submitted"');
      return isWhole && shown;
    });
    for (const part of [
      `Payout ${id}`,
      `"payout_id": "${id}"`,
      '"method": "sepa_instant"',
      'POST /transfers → 201',
      '"state": "queued"',
      `"outcome": "submitted", "bank_reference": "${world.bank.transfers.get(id)?.id}"`,
      `webhook POST /webhooks → received Sent { "id": "${sent.id}"`,
      '"name": "sent"',
      `"callback_id": "${sent.id}"`,
      'Webhooks that were refused',
      'WebhookRefused 401',
      '"to": { "name": "•••", "iban": "•••" }',
    ]) {
      expect(page).toContain(part);
    }
    for (const hidden of ['Ada', 'Lovelace', 'DE8937', 'Salary', SECRET, 'Bearer']) {
      expect((await get()).text).not.toContain(hidden);
    }
    await lookAt(`Payout ${id}`, 'connector-steps');
  });

  test('shows a failure by its name', async () => {
    world.bank.failNext('fails_after');
    await beginPayout(service, shop);
    await eventually('the failure', async () => (await read()).includes('failed: BankFailure'));
    expect(await read()).toContain('POST /transfers → The bank answered 500.');
  });

  test.each([
    ['of another machine, behind a proxy', { 'X-Forwarded-For': '203.0.113.7' }],
    ['of a page that has another name for this machine', { Host: 'attacker.example' }],
  ])('is not found by a request %s', async (_whose, headers) => {
    expect(await get(headers)).toMatchObject({ status: 404 });
    expect(await get(headers, world, '/connectors/page.css')).toMatchObject({ status: 404 });
  });

  test('is not served on live, and the answer that says so is in no frame', async () => {
    const policy = "default-src 'none'; frame-ancestors 'none'";
    expect(await get({}, live)).toMatchObject({ status: 404, policy });
  });
});

describe('the example connector', () => {
  test('queues a payout at the bank, which ends as its webhooks report', async () => {
    const id = await payAtBank({ reference: 'Salary 11/2026' });
    await becomes(id, 'submitted');
    expect(world.bank.posted.filter(({ reference }) => reference === id)).toEqual([
      {
        reference: id,
        ...{ amount: 1_000, currency: 'EUR', instant: true, text: 'Salary 11/2026' },
        to: { name: 'Ada Lovelace', iban: 'DE89370400440532013000' },
      },
    ]);
    const sent = world.bank.change(id, 'sent');
    expect((await postWebhook(world.url, JSON.stringify(sent), SECRET)).status).toBe(200);
    await becomes(id, 'sent');
    world.bank.change(id, 'arrived', { value_date: '2026-11-26' });
    const { connector, bank_reference } = await becomes(id, 'completed');
    expect([connector, bank_reference]).toEqual(['example', expect.stringMatching(/^T-/)]);
  });

  test('does not believe a bank that loses what it has answered', async () => {
    const id = await payAtBank();
    await becomes(id, 'submitted');
    world.bank.transfers.delete(id);
    const instructions = world.db.collection<{ _id: string }>('instructions');
    await instructions.updateOne({ _id: `payout:${id}` }, { $set: { deadline: new Date(0) } });
    const lookUp = world.connector.activities.lookUpPayout?.({ payout_id: id });
    await expect(lookUp).rejects.toThrow('does not find');
  });

  const signed = (body: string) => () => postWebhook(world.url, body, SECRET);
  test.each([
    ['without a signature', () => fetch(world.url, { method: 'POST', body: '{}' }), 401],
    ['with another secret', () => postWebhook(world.url, '{}', 'another'), 401],
    ['that is not JSON', signed('not JSON'), 400],
    ['without a transfer', signed('{}'), 400],
    ['of 65 KiB', signed('x'.repeat(66_560)), 413],
    ['by GET', () => fetch(world.url), 405],
    ['at another path', () => postWebhook(`${world.url}/more`, '{}', SECRET), 404],
  ])('refuses a webhook %s', async (_case, post, status) => {
    expect((await post()).status).toBe(status);
  });

  test('sets a report aside that contradicts an earlier one, and delivers those behind it', async () => {
    const id = await payAtBank();
    const sent = world.bank.change(id, 'sent');
    await becomes(id, 'sent');
    const other = { ...sent, transfer: { ...sent.transfer, state: 'arrived' } };
    expect((await postWebhook(world.url, JSON.stringify(other), SECRET)).status).toBe(200);
    expect(await world.db.collection('reports_set_aside').findOne({})).toMatchObject({
      ...{ _id: `${sent.id}:completed:${id}`, why: 'callback_id of another fact' },
      report: { resource_id: id, name: 'completed' },
    });
    const metrics = await world.own.registry.metrics();
    expect(metrics).toContain('payments_bank_reports_set_aside_total{connector="example"} 1');
    world.bank.change(id, 'arrived');
    await becomes(id, 'completed');
  });

  // Late in the file, since a report follows the first one after ten seconds.
  test('reports what it serves and can do, once and again', async () => {
    const { seen_at: _, ...report } = await eventually('another report', async () => {
      const later = await service.stores.capabilities.get('example');
      const isLater = Number(later?.seen_at) > world.startedAt + REPORT_MS / 2;
      return isLater && later?.set_aside === 1 && later;
    });
    expect(report).toEqual({
      ...{ _id: 'example', serves: ['sepa_credit_transfer', 'sepa_instant'], contract: 1 },
      ...{ functions: ['lookUpPayout', 'sendPayout'], reference_per_step: false },
      ...{ dispute_fee_max: null, set_aside: 1, stopped: null },
    });
  });

  test('stores what was instructed for a time, and nothing of a recipient', async () => {
    const instructions = world.db.collection('instructions');
    expect(await instructions.indexes()).toContainEqual(
      expect.objectContaining({ key: { changed_at: 1 }, expireAfterSeconds: 34_560_000 }),
    );
    expect(await instructions.countDocuments({ changed_at: { $not: { $type: 'date' } } })).toBe(0);
    const collections = await world.db.collections();
    const rows = await Promise.all(collections.map((each) => each.find({}).toArray()));
    expect(rows.flat().length).toBeGreaterThan(5);
    expect(JSON.stringify(rows)).not.toMatch(/Lovelace|DE89370400440532013000/);
  });
});
