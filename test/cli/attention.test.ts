import type { CallbackResource } from '../../src/domain/callback/callback';
import { LIFECYCLES } from '../../src/lifecycles';
import { actOn } from '../../src/service/operators/act';
import { acknowledgeAttention, type ShownAttention } from '../../src/service/operators/attention';
import { createMetricStore } from '../../src/store/metrics';
import { call, eventually } from '../support/http';
import { useResourceSetting } from './resource-setting';

const setting = useResourceSetting();

const WHY = ['--operator', 'mia', '--reason', 'Ticket 42'];
const ACT = { what: 'acknowledge', operator: 'mia', reason: 'Ticket 42' };

async function listed(id: string, ...options: string[]): Promise<ShownAttention[]> {
  const page = await setting.json('attention', 'list', '--limit', '1000', ...options);
  const { data } = page as { data: ShownAttention[] };
  return data.filter(({ resource_id }) => resource_id === id);
}

/** Waits for a row of the list with this reason. */
const rowOf = (id: string, reason: string) =>
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
    const row = await rowOf(id, 'malformed_callback');
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
    const again = await rowOf(id, 'malformed_callback');
    expect(again.id).not.toBe(row.id);
    expect(await listed(id, '--all')).toEqual([{ ...row, acknowledged: true }, again]);
    const act = await setting.json(kind.replace('_', '-'), 'act', id, 'acknowledge', ...WHY);
    expect(act).toMatchObject({ attention: null });
    expect(await listed(id)).toEqual([]);
  });
});

test('after the end, a reason that needs nothing is acknowledged, and leaves the Temporal UI', async () => {
  const id = await endedPayment();
  await setting.simulate('payment', id, { event: 'authorized' });
  const row = await rowOf(id, 'late_authorization_voided');
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

test('a reason whose money is in suspense is refused until the money has left', async () => {
  const id = await endedPayment();
  await setting.simulate('payment', id, { event: 'settled' });
  const row = await rowOf(id, 'late_settlement_reversed');
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

test('another reason than the operator saw is not acknowledged', async () => {
  const id = await setting.payment();
  await setting.handle('payment', id).signal('settled', { unreadable: true });
  const row = await rowOf(id, 'malformed_callback');
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

test('the oldest come first, and a page continues at its cursor', async () => {
  const ids = [await setting.payment(), await setting.payment(), await setting.payment()];
  for (const id of ids) {
    await setting.handle('payment', id).signal('settled', { unreadable: true });
    await rowOf(id, 'malformed_callback');
  }
  const pages: ShownAttention[] = [];
  let cursor: string[] = [];
  for (;;) {
    const page = (await setting.json('attention', 'list', '--all', '--limit', '2', ...cursor)) as {
      data: ShownAttention[];
      has_more: boolean;
      next_cursor: string | null;
    };
    pages.push(...page.data);
    expect(page.next_cursor).toBe(page.has_more ? page.data.at(-1)?.id : null);
    if (page.next_cursor === null) break;
    cursor = ['--after', page.next_cursor];
  }
  const order = pages.map(({ id }) => id);
  expect(new Set(order).size).toBe(order.length);
  expect(pages.map(({ since }) => since)).toEqual(pages.map(({ since }) => since).toSorted());
  const mine = pages.filter(({ resource_id }) => ids.includes(resource_id));
  expect(mine.map(({ resource_id }) => resource_id)).toEqual(ids);
  const { stdout } = await setting.cli('attention', 'list', '--limit', '1');
  expect(stdout).toMatch(/^ATTENTION +SINCE +REASON +AMOUNT +CURRENCY +ACKNOWLEDGED\n/);
  expect(stdout).toMatch(/\n\nThere are more: --after payment:\S+\n$/);
});
