import { postWebhook } from '../../../connectors/example/fake-bank';
import type { PayoutDocument } from '../../../src/store/payouts';
import { insertRecipient, storedPayout, useShop } from '../../api/payout-setting';
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

const readPayout = async (id: string) => (await shop.get(`/v1/payouts/${id}`)).body;
const becomes = (id: string, status: string) =>
  eventually(`a payout that is ${status}`, async () => {
    const payout = await readPayout(id);
    return payout.status === status && payout;
  });
const atBank = (id: string) => eventually('a transfer', async () => world.bank.transfers.get(id));
const postedFor = (id: string) => world.bank.posted.filter(({ reference }) => reference === id);
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
  const facts = { version: 1, status: 'created', connector: 'example', recipient_id } as const;
  const payout = storedPayout(shop, facts);
  await service.collection<PayoutDocument>('payouts').insertOne(payout);
  return payout._id;
}

test('it reports what it serves and can do, once and again', async () => {
  const { capabilities } = service.stores;
  const first = await eventually('a report', () => capabilities.get('example'));
  expect(first).toEqual({
    _id: 'example',
    serves: ['sepa_credit_transfer', 'sepa_instant'],
    functions: ['lookUpPayout', 'sendPayout'],
    contract: 1,
    seen_at: expect.any(Date),
  });
  await eventually('another report', async () => {
    const later = await capabilities.get('example');
    return later !== null && later.seen_at > first.seen_at;
  });
});

test('a payout is queued at the bank, and ends as its webhooks report', async () => {
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
  await becomes(body.id, 'completed');
  const stored = await service.stores.payouts.get(body.id);
  expect(stored).toMatchObject({
    connector: 'example',
    bank_reference: expect.stringMatching(/^T-/),
  });
});

test('lost webhooks are found by polling, page by page', async () => {
  const ids = await Promise.all([1, 2, 3].map(async () => (await shop.pay()).body.id));
  await Promise.all(ids.map(atBank));
  for (const id of ids) world.bank.change(id, 'sent');
  for (const id of ids) world.bank.change(id, 'arrived');
  await Promise.all(ids.map((id) => becomes(id, 'completed')));
});

test('a transfer that the bank returns comes back with the bank’s reason', async () => {
  const { body } = await shop.pay();
  await atBank(body.id);
  world.bank.change(body.id, 'sent');
  world.bank.change(body.id, 'arrived');
  world.bank.change(body.id, 'returned', { reason: 'account_unknown' });
  expect(await becomes(body.id, 'returned')).toMatchObject({
    returned: {
      code: 'account_unknown',
      reason: 'The recipient’s bank does not know the account.',
    },
  });
});

test('a refusal of the bank fails the payout in words', async () => {
  const { body } = await shop.pay({ amount: 66_600 });
  expect(await becomes(body.id, 'failed')).toMatchObject({
    failure: { code: 'amount_too_high', message: 'The bank sends no transfer of this amount.' },
  });
});

test.each(['cut_after', 'fails_after'] as const)(
  'a payout whose answer is lost (%s) is looked up and not sent again',
  async (fault) => {
    world.bank.failNext(fault);
    const { body } = await shop.pay();
    await becomes(body.id, 'submitted');
    expect(postedFor(body.id)).toHaveLength(1);
  },
);

test('a payout that never arrived is sent again once no attempt can reach the bank', async () => {
  world.bank.failNext('cut_before');
  const id = await storePayout();
  await expect(activities().sendPayout(instruct(id))).rejects.toThrow('The bank does not answer');
  await expect(activities().lookUpPayout({ payout_id: id })).rejects.toThrow('may still reach');
  await expect(activities().sendPayout(instruct(id))).rejects.toThrow('may still reach');
  expect(await activities().cancelPayout({ payout_id: id })).toEqual({ outcome: 'unknown' });
  await world.endAttempt(id);
  expect(await activities().lookUpPayout({ payout_id: id })).toEqual({ outcome: 'not_found' });
  const sent = await activities().sendPayout(instruct(id));
  expect(sent).toEqual({ outcome: 'submitted', bank_reference: expect.any(String) });
  expect(await activities().sendPayout(instruct(id))).toEqual(sent);
  expect(postedFor(id)).toHaveLength(1);
  expect(await activities().cancelPayout({ payout_id: id })).toEqual({ outcome: 'too_late' });
});

test('of concurrent attempts one reaches the bank', async () => {
  const id = await storePayout();
  const attempts = [1, 2, 3, 4].map(() => activities().sendPayout(instruct(id)));
  const results = await Promise.allSettled(attempts);
  expect(results.filter(({ status }) => status === 'fulfilled').length).toBeGreaterThan(0);
  expect(postedFor(id)).toHaveLength(1);
});

test('a cancelled payout is refused when it arrives later', async () => {
  const id = await storePayout();
  const refused = { outcome: 'refused', code: 'cancelled', message: expect.any(String) };
  const cancel = () => activities().cancelPayout({ payout_id: id });
  expect([await cancel(), await cancel()]).toEqual([
    { outcome: 'cancelled' },
    { outcome: 'cancelled' },
  ]);
  expect(await activities().sendPayout(instruct(id))).toEqual(refused);
  expect(await activities().lookUpPayout({ payout_id: id })).toEqual(refused);
  expect(postedFor(id)).toEqual([]);
});

test('a bank that loses what it has answered is not believed', async () => {
  const id = await storePayout();
  await activities().sendPayout(instruct(id));
  world.bank.transfers.delete(id);
  await world.endAttempt(id);
  await expect(activities().lookUpPayout({ payout_id: id })).rejects.toThrow('does not find');
});

test.each([
  ['of another amount', { amount: 1_001 }, 'differs from the payout in amount'],
  ['of live', { livemode: true }, 'serves the sandbox only'],
])('an instruction %s does not reach the bank', async (_case, changes, message) => {
  const id = await storePayout();
  await expect(activities().sendPayout(instruct(id, changes))).rejects.toThrow(message);
  expect(postedFor(id)).toEqual([]);
});

test('a payout to a deleted recipient is refused', async () => {
  const id = await storePayout();
  const { recipient_id } = (await service.stores.payouts.get(id)) ?? {};
  const recipients = service.collection<{ _id: string; sealed: string | null }>('recipients');
  await recipients.updateOne({ _id: String(recipient_id) }, { $set: { sealed: null } });
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
])('a webhook %s is refused', async (_case, post, status) => {
  expect((await post()).status).toBe(status);
});

test('a report that contradicts an earlier one is set aside, and those behind it arrive', async () => {
  const { body } = await shop.pay();
  await atBank(body.id);
  const sent = world.bank.change(body.id, 'sent');
  await becomes(body.id, 'sent');
  const other = { ...sent, transfer: { ...sent.transfer, state: 'arrived' } };
  expect((await postWebhook(world.url, JSON.stringify(other), SECRET)).status).toBe(200);
  expect(await world.db.collection('reports_set_aside').findOne({})).toMatchObject({
    ...{ _id: `${sent.id}:completed`, why: 'callback_id of another fact' },
    report: { resource_id: body.id, name: 'completed' },
  });
  const metrics = await world.own.registry.metrics();
  expect(metrics).toContain('payments_bank_reports_set_aside_total{connector="example"} 1');
  world.bank.change(body.id, 'arrived');
  await becomes(body.id, 'completed');
});

test('what was instructed is stored for a time', async () => {
  const instructions = world.db.collection('instructions');
  expect(await instructions.indexes()).toContainEqual(
    expect.objectContaining({ key: { changed_at: 1 }, expireAfterSeconds: 34_560_000 }),
  );
  expect(await instructions.countDocuments({ changed_at: { $not: { $type: 'date' } } })).toBe(0);
});

test('nothing of a recipient is in the connector’s own database', async () => {
  const collections = await world.db.collections();
  const rows = await Promise.all(collections.map((each) => each.find({}).toArray()));
  expect(rows.flat().length).toBeGreaterThan(5);
  expect(JSON.stringify(rows)).not.toMatch(/Lovelace|DE89370400440532013000/);
});
