import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { postWebhook } from '../../../connectors/example/fake-bank';
import { sandboxBankDatabase } from '../../../src/service/sandbox-bank/movements';
import type { PayoutDocument } from '../../../src/store/payouts';
import {
  FUNDS,
  insertRecipient,
  openShop,
  type Shop,
  storedPayout,
  useShop,
} from '../../api/payout-setting';
import { expectRefusal } from '../../api/refusal';
import { eventually } from '../../support/http';
import { useService } from '../../support/service';
import { makePrefix, SECRET, useExample } from './world';

const prefix = makePrefix();
// A product of its own: payouts in EUR go to the example, and the sandbox bank plays those in GBP.
const service = useService({
  ...{ live: { connectors: '', prefix }, autoplay: true },
  tests: 'example=sepa_credit_transfer|sepa_instant',
});
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
  const { body } = await shop.pay(changes);
  await atBank(body.id);
  return body.id;
};

describe('the page of a connector', () => {
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
  });

  test('shows a failure by its name', async () => {
    world.bank.failNext('fails_after');
    await shop.pay();
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

  test('reports what it serves and can do, once and again', async () => {
    const { capabilities } = service.stores;
    const first = await eventually('a report', () => capabilities.get('example'));
    expect(first).toEqual({
      _id: 'example',
      serves: ['sepa_credit_transfer', 'sepa_instant'],
      functions: ['lookUpPayout', 'sendPayout'],
      contract: 1,
      seen_at: expect.any(Date),
      stopped: null,
    });
    await eventually('another report', async () => {
      const later = await capabilities.get('example');
      return later !== null && later.seen_at > first.seen_at;
    });
  });

  test('queues a payout at the bank, which ends as its webhooks report', async () => {
    const { body } = await shop.pay({ reference: 'Salary 11/2026' });
    await becomes(body.id, 'submitted');
    expect(postedFor(body.id)).toEqual([
      {
        reference: body.id,
        ...{ amount: 1_000, currency: 'EUR', instant: true, text: 'Salary 11/2026' },
        to: { name: 'Ada Lovelace', iban: 'DE89370400440532013000' },
      },
    ]);
    const sent = world.bank.change(body.id, 'sent');
    expect((await postWebhook(world.url, JSON.stringify(sent), SECRET)).status).toBe(200);
    await becomes(body.id, 'sent');
    world.bank.change(body.id, 'arrived', { value_date: '2026-11-26' });
    const { connector, bank_reference } = await becomes(body.id, 'completed');
    expect([connector, bank_reference]).toEqual(['example', expect.stringMatching(/^T-/)]);
  });

  test('finds lost webhooks by polling, page by page', async () => {
    const ids = await Promise.all([1, 2, 3].map(() => payAtBank()));
    for (const state of ['sent', 'arrived']) {
      for (const id of ids) world.bank.change(id, state);
    }
    await Promise.all(ids.map((id) => becomes(id, 'completed')));
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
    const { body } = await shop.pay({ amount: 66_600 });
    expect((await becomes(body.id, 'failed')).failure).toMatchObject({
      ...{ code: 'amount_too_high', message: 'The bank sends no transfer of this amount.' },
    });
  });

  test.each(['cut_after', 'fails_after'] as const)(
    'looks up a payout whose answer is lost (%s), and does not send it again',
    async (fault) => {
      world.bank.failNext(fault);
      const { body } = await shop.pay();
      await becomes(body.id, 'submitted');
      expect(postedFor(body.id)).toHaveLength(1);
    },
  );

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

  test('sends one of concurrent attempts', async () => {
    const id = await storePayout();
    const attempts = [1, 2, 3, 4].map(() => activities().sendPayout(instruct(id)));
    const results = await Promise.allSettled(attempts);
    expect(results.filter(({ status }) => status === 'fulfilled').length).toBeGreaterThan(0);
    expect(postedFor(id)).toHaveLength(1);
  });

  test('refuses a cancelled payout when it arrives later', async () => {
    const id = await storePayout();
    const { sendPayout, lookUpPayout, cancelPayout } = activities();
    const refused = { outcome: 'refused', code: 'cancelled', message: expect.any(String) };
    for (const _attempt of ['first', 'second']) {
      expect(await cancelPayout({ payout_id: id })).toEqual({ outcome: 'cancelled' });
    }
    expect(await sendPayout(instruct(id))).toEqual(refused);
    expect(await lookUpPayout({ payout_id: id })).toEqual(refused);
    expect(postedFor(id)).toEqual([]);
  });

  test('does not believe a bank that loses what it has answered', async () => {
    const id = await storePayout();
    await activities().sendPayout(instruct(id));
    world.bank.transfers.delete(id);
    await world.endAttempt(id);
    const lookUp = activities().lookUpPayout({ payout_id: id });
    await expect(lookUp).rejects.toThrow('does not find');
  });

  test('refuses a payout to a deleted recipient', async () => {
    const id = await storePayout();
    const { recipient_id } = (await service.stores.payouts.get(id)) ?? {};
    const recipients = service.collection<{ _id: string; ciphertext: string | null }>('recipients');
    await recipients.updateOne({ _id: String(recipient_id) }, { $set: { ciphertext: null } });
    expect(await activities().sendPayout(instruct(id))).toMatchObject({
      ...{ outcome: 'refused', code: 'recipient_deleted' },
    });
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

describe('the sandbox bank', () => {
  /** Pays in GBP, which the sandbox bank sends. */
  const pay = ({ pay: payBy, recipients }: Shop, changes: object = {}) =>
    payBy({
      ...{ method: 'faster_payments', currency: 'GBP', recipient_id: recipients.faster_payments },
      ...changes,
    });
  const readBalance = (merchant: Shop) => merchant.balance({ currency: 'GBP' });
  const COMPLETED = ['payout.submitted', 'payout.sent', 'payout.completed'];

  /** Waits until the bank has reported all; returns its own reports, without simulated ones. */
  const readReports = (resource_id: string) =>
    eventually('the end of the bank’s reports', async () => {
      const outbox = service.mongo
        .db(`${service.database}_sandbox_bank`)
        .collection<{ _id: string; name: string; state: string; done_at: Date | null }>('outbox');
      const own = { resource_id, _id: { $not: /^simulated_/ } };
      const rows = await outbox.find(own).sort({ 'body.occurred_at': 1 }).toArray();
      const isDone = rows.length > 0 && rows.every(({ done_at }) => done_at !== null);
      return isDone && rows.map(({ name, state }) => ({ name, state }));
    });

  /** Makes a recipient unreadable. @returns function that makes it readable again */
  async function breakRecipient({
    recipients: { faster_payments: _id, card_payout: other },
  }: Shop) {
    const recipients = service.collection<{ _id: string; ciphertext: string }>('recipients');
    const read = async (id: string) => String((await recipients.findOne({ _id: id }))?.ciphertext);
    const write = (ciphertext: string) => recipients.updateOne({ _id }, { $set: { ciphertext } });
    const [own, another] = [await read(_id), await read(other)];
    await write(another);
    return () => write(own);
  }
  const remove = ({ recipients, delete: send }: Shop) =>
    send(`/v1/payout-recipients/${recipients.faster_payments}`);

  it.concurrent.each([
    [1_000, COMPLETED, 0],
    [66_622, ['payout.submitted', 'payout.sent', 'payout.failed'], 0],
    [66_625, COMPLETED, 0],
    [66_626, COMPLETED, 0],
    [66_627, [...COMPLETED, 'payout.returned'], 0],
    [66_628, ['payout.submitted', 'payout.sent', 'payout.returned'], 0],
    [66_629, [...COMPLETED, 'payout.returned'], 2],
  ])('gives a payout of %i the events %j, each once', async (amount, events, unapplied) => {
    const merchant = await openShop(service);
    const { id } = (await pay(merchant, { amount })).body;
    const last = String(events.at(-1)).replace('payout.', '');
    await becomes(id, last);
    await readReports(id);
    await eventually('every report to be applied or ignored', async () => {
      const callbacks = await service.stores.callbacks.forResource(id);
      const ignored = callbacks.filter((each) => each.unapplied !== null);
      return ignored.length === unapplied && callbacks.length === events.length - 2 + unapplied;
    });
    expect(await merchant.events(id)).toEqual(events);
    const available = last === 'completed' ? FUNDS.main - amount : FUNDS.main;
    expect(await readBalance(merchant)).toEqual([available, 0]);
  });

  it.concurrent('returns no payout to a card, and operators see a bank that says so', async () => {
    const merchant = await openShop(service);
    const card = { method: 'card_payout', recipient_id: merchant.recipients.card_payout };
    const { id } = (await merchant.pay({ ...card, amount: 66_627 })).body;
    await service.becomes('payouts', id, { attention: 'return_not_possible' });
    expect(await readReports(id)).toHaveLength(2);
    expect((await becomes(id, 'completed')).returned).toBeNull();
    expect(await merchant.events(id)).toEqual(COMPLETED);
  });

  it.concurrent('waits for a recipient who cannot be decrypted', async () => {
    const merchant = await openShop(service);
    const repair = await breakRecipient(merchant);
    const { id, status } = (await pay(merchant)).body;
    expect(status).toBe('created');
    const bank = service.mongo.db(sandboxBankDatabase(service.database));
    expect(await bank.collection<{ _id: string }>('payouts').findOne({ _id: id })).toBeNull();
    await repair();
    await becomes(id, 'completed');
    expect(await merchant.events(id)).toEqual(COMPLETED);
  });

  it.concurrent.each(['failed', 'returned'])(
    'drops what it planned for a payout that a simulation has %s',
    async (event) => {
      // A busy machine may be later than the bank, which plays by itself in three seconds.
      const { merchant, id } = await eventually(
        `one that is ${event} before it plays`,
        async () => {
          const merchant = await openShop(service);
          const { id } = (await pay(merchant)).body;
          const { body } = await merchant.simulate(id, { event });
          const [first] = await readReports(id);
          return body.status === event && first?.state !== 'sent' && { merchant, id };
        },
      );
      expect(await readReports(id)).toEqual([{ name: 'completed', state: 'dropped' }]);
      expect(await service.stores.callbacks.forResource(id)).toHaveLength(1);
      expect((await service.stores.payouts.get(id))?.attention).toBeNull();
      expect(await readBalance(merchant)).toEqual([FUNDS.main, 0]);
    },
  );

  it.concurrent('fails a payout whose recipient is deleted before it has it, and the money is free', async () => {
    const merchant = await openShop(service);
    await breakRecipient(merchant);
    const { id } = (await pay(merchant)).body;
    const { status, body } = await remove(merchant);
    expect([status, body.deleted]).toEqual([200, true]);
    const { failure } = await becomes(id, 'failed');
    expect(failure).toMatchObject({ code: 'recipient_deleted' });
    expect(await readBalance(merchant)).toEqual([FUNDS.main, 0]);
    expectRefusal(await pay(merchant), 'recipient_deleted');
  });

  it.concurrent('sends, fails or refuses each of seven payouts whose recipient is deleted meanwhile', async () => {
    const merchant = await openShop(service);
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        index === 3 ? remove(merchant) : pay(merchant, { amount: 1_000 + index }),
      ),
    );
    const created = answers.filter(({ status }) => status === 201);
    const refused = answers.filter(({ status }) => status === 422);
    for (const answer of refused) expectRefusal(answer, 'recipient_deleted');
    expect(created.length + refused.length).toBe(7);
    const ended = await Promise.all(
      created.map(({ body }) => becomes(body.id, 'completed', 'failed')),
    );
    for (const { status, failure } of ended) {
      expect(failure?.code).toBe(status === 'failed' ? 'recipient_deleted' : undefined);
    }
    const paid = ended.filter(({ status }) => status === 'completed');
    const total = paid.reduce((sum, { amount }) => sum + amount, 0);
    expect(await readBalance(merchant)).toEqual([FUNDS.main - total, 0]);
  });
});
