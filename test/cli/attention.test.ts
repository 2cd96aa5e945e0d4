import type { CallbackResource } from '../../src/domain/callback/callback';
import { LIFECYCLES } from '../../src/lifecycles';
import { actOn } from '../../src/service/operators/act';
import { acknowledgeAttention, type ShownAttention } from '../../src/service/operators/attention';
import { createMetricStore } from '../../src/store/metrics';
import { call, eventually } from '../support/http';
import { useResourceSetting } from './resource-setting';

// Alone: it counts all reasons in the metrics.
const setting = useResourceSetting({ alone: true });

const WHY = ['--operator', 'mia', '--reason', 'Ticket 42'];
const ACT = { what: 'acknowledge', operator: 'mia', reason: 'Ticket 42' };

async function listed(id: string, ...options: string[]): Promise<ShownAttention[]> {
  const page = await setting.json('attention', 'list', '--limit', '1000', ...options);
  const { data } = page as { data: ShownAttention[] };
  return data.filter(({ resource_id }) => resource_id === id);
}

/** Waits for a row of the list with this reason. */
const awaitRow = (id: string, reason: string) =>
  eventually(reason, async () => (await listed(id)).find((row) => row.reason === reason));

const stored = async (kind: CallbackResource, id: string) => {
  const document = await LIFECYCLES[kind].get(setting.service.stores, id);
  if (document === null) throw new Error('not stored');
  return document;
};

async function countStuck(resource: CallbackResource): Promise<number> {
  const { stuck } = await createMetricStore(setting.deps.db).read(new Date());
  return stuck
    .filter((row) => row.resource === resource)
    .reduce((sum, { count }) => sum + count, 0);
}

async function endedPayment(): Promise<string> {
  const id = await setting.payment();
  const path = `/v1/payments/${id}/cancel`;
  const { status, text } = await call(setting.service.url, 'POST', path, { key: setting.shop.key });
  if (status !== 200) throw new Error(text);
  await setting.handle('payment', id).result();
  return id;
}

async function sentSettlement(): Promise<string> {
  await setting.registerWallet('0x52908400098527886E0F7030069857D2E4169EE7');
  const payment = await setting.cryptoPayment();
  await setting.simulate('crypto_payment', payment, { event: 'received' });
  await setting.handle('crypto_payment', payment).result();
  return await setting.cryptoSettlement('66643');
}

describe.each<[CallbackResource, string, () => Promise<string>]>([
  ['payment', 'settled', () => setting.payment()],
  ['refund', 'settled', async () => (await setting.refund()).id],
  ['payout', 'completed', () => setting.payout({ amount: 66_623 })],
  ['crypto_payment', 'deposit', () => setting.cryptoPayment()],
  ['crypto_settlement', 'completed', sentSettlement],
])('an attention reason of a %s', (kind, name, open) => {
  test('is listed, acknowledged, and listed again when it comes again', async () => {
    const id = await open();
    const report = () => setting.handle(kind, id).signal(name, { unreadable: true });
    await report();
    const row = await awaitRow(id, 'malformed_callback');
    const { amount, currency } = await stored(kind, id);
    expect(row).toEqual({
      id: expect.stringContaining(`${kind}:${id}:`),
      resource: kind,
      resource_id: id,
      reason: 'malformed_callback',
      since: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      amount,
      currency,
      acknowledged: false,
    });
    const before = await countStuck(kind);
    const done = { id: row.id, resource: kind, resource_id: id, reason: row.reason };
    const acknowledge = () => setting.json('attention', 'acknowledge', row.id, ...WHY);
    expect(await acknowledge()).toEqual({ ...done, acknowledged: true });
    expect(await listed(id)).toEqual([]);
    expect(await listed(id, '--all')).toEqual([{ ...row, acknowledged: true }]);
    expect(await countStuck(kind)).toBe(before - 1);
    const document = await stored(kind, id);
    const audit = { who: 'mia', what: 'acknowledge', why: 'Ticket 42', before: row.reason };
    expect(document).toMatchObject({ attention: null, audit: [audit] });
    const { account_id } = document;
    const lines = await setting.service.stores.auditLog.list({ account_id, limit: 100 });
    expect(lines.filter(({ target }) => target === id)).toMatchObject([
      { act: `${kind}.act`, after: { what: 'acknowledge', why: 'Ticket 42' } },
    ]);
    await acknowledge();
    expect((await stored(kind, id)).audit).toHaveLength(1);

    await report();
    const again = await awaitRow(id, 'malformed_callback');
    expect(again.id).not.toBe(row.id);
    expect(await listed(id, '--all')).toEqual([{ ...row, acknowledged: true }, again]);
    const act = await setting.json(kind.replace('_', '-'), 'act', id, 'acknowledge', ...WHY);
    expect(act).toMatchObject({ attention: null });
    expect(await listed(id)).toEqual([]);
  });
});

test('a reason of an ended payment is acknowledged, and leaves the search attributes of Temporal', async () => {
  const id = await endedPayment();
  await setting.simulate('payment', id, { event: 'authorized' });
  const row = await awaitRow(id, 'late_authorization_voided');
  await setting.handle('payment', id).result();
  const act = { operator: 'mia', reason: 'Ticket 42' };
  expect(await acknowledgeAttention(setting.deps, row.id, act)).toMatchObject({
    reason: 'late_authorization_voided',
  });
  await setting.handle('payment', id).result();
  expect(await listed(id)).toEqual([]);
  const { searchAttributes } = await setting.handle('payment', id).describe();
  expect(searchAttributes['ServiceAttention']).toEqual([null]);
  expect(await stored('payment', id)).toMatchObject({ status: 'cancelled', attention: null });
  await expect(actOn(setting.deps, 'payment', id, ACT)).rejects.toMatchObject({
    code: 'wrong_state',
    message: 'The attention reason is none.',
  });
});

test('a reason whose money is in suspense is acknowledged only after the money has left', async () => {
  const id = await endedPayment();
  await setting.simulate('payment', id, { event: 'settled' });
  const row = await awaitRow(id, 'late_settlement_reversed');
  const acknowledge = () =>
    acknowledgeAttention(setting.deps, row.id, { operator: 'mia', reason: 'Ticket 42' });
  await expect(acknowledge()).rejects.toMatchObject({ code: 'money_in_suspense' });
  expect(await listed(id)).toEqual([row]);
  expect(await stored('payment', id)).toMatchObject({ attention: row.reason, audit: [] });
  await setting.simulate('payment', id, { event: 'reversed' });
  await setting.handle('payment', id).result();
  await acknowledge();
  expect(await listed(id)).toEqual([]);
});

test('a reason other than the one that the operator saw is not acknowledged', async () => {
  const id = await setting.payment();
  await setting.handle('payment', id).signal('settled', { unreadable: true });
  const row = await awaitRow(id, 'malformed_callback');
  const stale = actOn(setting.deps, 'payment', id, { ...ACT, attention: 'amount_differs' });
  await expect(stale).rejects.toMatchObject({
    code: 'wrong_state',
    message: 'The attention reason is malformed_callback.',
  });
  await setting.json('payment', 'act', id, 'mark_failed', ...WHY);
  expect(await listed(id)).toEqual([row]);
  for (const unknown of ['none', `payment:${id}:1`, row.id.replace('payment', 'coin')]) {
    const { code } = await setting.refusal('attention', 'acknowledge', unknown, ...WHY);
    expect(code).toBe('attention_not_found');
  }
});

test('the list begins with the oldest reason, and --after continues it', async () => {
  const ids = [await setting.payment(), await setting.payment(), await setting.payment()];
  for (const id of ids) {
    await setting.handle('payment', id).signal('settled', { unreadable: true });
    await awaitRow(id, 'malformed_callback');
  }
  const [first] = await listed(ids[0] ?? '');
  const pages = first === undefined ? [] : [first];
  // Others' reasons may stand between those of this file.
  while (pages.at(-1)?.resource_id !== ids.at(-1)) {
    const after = ['--after', pages.at(-1)?.id ?? ''];
    const page = await setting.json('attention', 'list', '--all', '--limit', '1', ...after);
    const { data, has_more, next_cursor } = Object(page);
    expect(data).toHaveLength(1);
    expect(next_cursor).toBe(has_more ? data[0].id : null);
    pages.push(...data);
  }
  const order = pages.map(({ id }) => id);
  expect(new Set(order).size).toBe(order.length);
  expect(pages.map(({ since }) => since)).toEqual(pages.map(({ since }) => since).toSorted());
  const own = pages.filter(({ resource_id }) => ids.includes(resource_id));
  expect(own.map(({ resource_id }) => resource_id)).toEqual(ids);
  const { stdout } = await setting.cli('attention', 'list', '--limit', '1');
  expect(stdout).toMatch(/^ATTENTION +SINCE +REASON +AMOUNT +CURRENCY +ACKNOWLEDGED\n/);
  expect(stdout).toMatch(/\n\nThere are more: --after payment:\S+\n$/);
});
