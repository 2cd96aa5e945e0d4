import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { postWebhook } from '../../../connectors/example/fake-bank';
import { REPORT_MS } from '../../../src/domain/capabilities';
import type { PayoutDocument } from '../../../src/store/payouts';
import { insertRecipient, storedPayout, useShop } from '../../api/payout-setting';
import { collectNoise, look, useBrowser } from '../../browser/dashboard-visit';
import { commandsIn, useCommands } from '../../cli/cli';
import { eventually } from '../../support/http';
import { useService } from '../../support/service';
import { beginPayout } from '../begin-payout';
import { makePrefix, SECRET, useExample } from './world';

const prefix = makePrefix();
const ROUTES = 'example=sepa_credit_transfer|sepa_instant';
// A product of its own: its payouts in EUR go to the example.
const service = useService({ live: { connectors: '', prefix }, tests: ROUTES });
const commands = useCommands(service);
const shop = useShop(service);
const world = useExample(service, prefix);
const live = useExample(service, `${prefix}-live`, 'live');

/** Waits until a payout has one of these statuses. */
const becomes = (id: string, ...statuses: string[]) =>
  eventually(`a payout that is ${statuses}`, async () => {
    const payout = await service.stores.payouts.get(id);
    return payout !== null && statuses.includes(payout.status) && payout;
  });
const atBank = (id: string) => eventually('a transfer', async () => world.bank.transfers.get(id));
const postedFor = (id: string) => world.bank.posted.filter(({ reference }) => reference === id);
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
  const instruct = (id: string, changes: object = {}) => ({
    ...{ payout_id: id, version: 1, amount: 1_000, currency: 'EUR', livemode: false },
    ...{ method: 'sepa_instant', ...changes },
  });
  const activities = () => {
    const { sendPayout, lookUpPayout, cancelPayout } = world.connector.activities;
    if (!sendPayout || !lookUpPayout || !cancelPayout) throw new Error('An activity is missing.');
    return { sendPayout, lookUpPayout, cancelPayout };
  };

  /** A payout whose document says that it was created, with no workflow behind it. */
  async function storePayout(): Promise<string> {
    const recipient_id = await insertRecipient(service, shop, 'sepa_instant');
    const facts = {
      version: 1,
      transition: 1,
      status: 'created',
      connector: 'example',
      recipient_id,
    } as const;
    const payout = storedPayout(shop, facts);
    await service.collection<PayoutDocument>('payouts').insertOne(payout);
    return payout._id;
  }

  test('queues a payout at the bank, which ends as its webhooks report', async () => {
    const id = await payAtBank({ reference: 'Salary 11/2026' });
    await becomes(id, 'submitted');
    expect(postedFor(id)).toEqual([
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

  test('returns a payout with the reason of the bank', async () => {
    const id = await payAtBank();
    world.bank.change(id, 'sent');
    world.bank.change(id, 'arrived');
    world.bank.change(id, 'returned', { reason: 'account_unknown' });
    const { returned } = await becomes(id, 'returned');
    expect(returned).toMatchObject({
      code: 'account_unknown',
      reason: 'The recipient’s bank does not know the account.',
    });
  });

  test('fails a payout that the bank refuses, in words', async () => {
    const id = await beginPayout(service, shop, { amount: 66_600 });
    expect((await becomes(id, 'failed')).failure).toMatchObject({
      ...{ code: 'amount_too_high', message: 'The bank sends no transfer of this amount.' },
    });
  });

  test('sends a payout that never arrived again once no attempt can reach the bank', async () => {
    const id = await storePayout();
    const { sendPayout, lookUpPayout, cancelPayout } = activities();
    await expect(sendPayout(instruct(id, { livemode: true }))).rejects.toThrow('the sandbox only');
    world.bank.failNext('cut_before');
    await expect(sendPayout(instruct(id))).rejects.toThrow('The bank does not answer');
    await expect(lookUpPayout({ payout_id: id })).rejects.toThrow('may still reach');
    await expect(sendPayout(instruct(id))).rejects.toThrow('may still reach');
    expect(await cancelPayout({ payout_id: id })).toEqual({ outcome: 'unknown' });
    await world.endAttempt(id);
    expect(await lookUpPayout({ payout_id: id })).toEqual({ outcome: 'not_found' });
    const sent = await sendPayout(instruct(id));
    expect(sent).toEqual({ outcome: 'submitted', bank_reference: expect.any(String) });
    expect(await sendPayout(instruct(id))).toEqual(sent);
    expect(postedFor(id)).toHaveLength(1);
    expect(await cancelPayout({ payout_id: id })).toEqual({ outcome: 'too_late' });
  });

  test('does not believe a bank that loses what it has answered', async () => {
    const id = await storePayout();
    await activities().sendPayout(instruct(id));
    world.bank.transfers.delete(id);
    await world.endAttempt(id);
    const lookUp = activities().lookUpPayout({ payout_id: id });
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
      ...{ _id: `${sent.id}:completed`, why: 'callback_id of another fact' },
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
      return Number(later?.seen_at) > world.startedAt + REPORT_MS / 2 && later;
    });
    expect(report).toEqual({
      ...{ _id: 'example', serves: ['sepa_credit_transfer', 'sepa_instant'], contract: 1 },
      ...{ functions: ['lookUpPayout', 'sendPayout'], reference_per_step: false, stopped: null },
    });
  });

  test('sends nothing where its database is older than its state file', async () => {
    const payout_id = await storePayout();
    const counts = world.db.collection('send_counts');
    const before = await counts.find().toArray();
    await activities().sendPayout(instruct(payout_id));
    // The count is raised at most once a second.
    await eventually('a raised count', async () => {
      await activities().sendPayout(instruct(payout_id));
      return (await counts.findOne())?.['count'] > (before[0]?.['count'] ?? 0);
    });
    await counts.updateOne({}, { $set: { count: 0 } });
    await expect(activities().lookUpPayout({ payout_id })).rejects.toThrow('not instructed');
    const { stopped } = await eventually('the report of the stop', async () => {
      const report = await service.stores.capabilities.get('example');
      return report?.stopped != null && report;
    });
    expect(stopped?.reason).toContain('older than its state file');
    const release = ['connector', 'release', 'example', '--env', 'sandbox', '--after-restore'];
    const routes = { SANDBOX_CONNECTORS: ROUTES, TASK_QUEUE_PREFIX: prefix };
    const cli = commandsIn({ ...commands.env, ...routes });
    await cli.json(...release, '--reason', 'Ticket 1');
    expect(await activities().lookUpPayout({ payout_id })).toMatchObject({ outcome: 'submitted' });
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
