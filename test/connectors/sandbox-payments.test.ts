import { randomUUID } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import { eventually, retryUntilDone } from '../support/eventually';
import { instruction, useBankWorld } from './bank-server';

const world = useBankWorld();
const activities = () => world.server.bank.activities;
/** Longer than any test, and than a busy machine needs. */
const AGES_MS = 200_000;

const listMovements = (id: string) => world.listMovements(id);
const pay = async (change?: Parameters<typeof instruction>[0]) => {
  const opened = await world.openFor(change);
  await world.approve(opened.url);
  return opened;
};

test('a session shows no page once it is closed, and does not open again', async () => {
  const { id, url, input } = await world.openFor();
  expect(await activities().closeSession({ payment_id: id })).toEqual({ outcome: 'closed' });
  const code = 'session_closed';
  expect(await activities().openSession(input)).toMatchObject({ outcome: 'declined', code });
  const page = await world.approve(url);
  expect([page.status, await world.rows(id)]).toEqual([410, []]);
});

test('a reversal is sent once for each instruction, and never more than came', async () => {
  const { id } = await pay();
  await world.untilSettled(id);
  await world.holdLate(id, 'first', 'again');
  const ids = { payment_id: id, instruction_id: `reversal:${id}` };
  const input = { ...ids, amount: 4_950, currency: 'EUR' };
  const first = await activities().reversePayment(input);
  expect(first).toMatchObject({ outcome: 'accepted' });
  expect(await activities().reversePayment(input)).toEqual(first);
  expect(await activities().reversePayment({ ...input, amount: 1 })).toEqual(first);
  expect((await world.readSession(id))?.status).toBe('reversed');
  await activities().reversePayment({ ...input, instruction_id: `reversal:${id}:again` });
  await world.readSentSignals(id);
  expect(await listMovements(id)).toEqual(['settled 4950 EUR', 'reversed -4950 EUR']);
});

describe('the customer’s decision', () => {
  it('to approve authorizes at once and settles three seconds later', async () => {
    const { id, url, input } = await world.openFor();
    const answer = await world.approve(url);
    expect([answer.status, answer.headers.get('location')]).toEqual([303, input.return_url]);
    expect(await world.readSentSignals(id)).toEqual(['authorized', 'settled']);
    const callbacks = await world.callbacks(id);
    const [first = 0, second = 0] = callbacks.map(({ body }) => Date.parse(body.occurred_at));
    expect(second - first).toBe(3_000);
    expect((await world.readSession(id))?.status).toBe('settled');
  });

  it('to approve counts once when it is sent ten times at once, and the session stays', async () => {
    const { id, url } = await world.openFor();
    const answers = await Promise.all(Array.from({ length: 10 }, () => world.approve(url)));
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(303));
    expect((await world.rows(id)).map(({ name }) => name)).toEqual(['authorized', 'settled']);
    const closing = activities().closeSession({ payment_id: id });
    expect(await closing).toEqual({ outcome: 'already_authorized' });
  });

  it('to decline fails the payment with the code `declined` and the reason picked', async () => {
    const { id, url } = await world.openFor({ method: 'visa' });
    await world.decide(url, { decision: 'decline', reason: 'card_blocked' });
    expect(await world.readSentSignals(id)).toEqual(['failed']);
    const reported = { code: 'declined', reason: 'The card is blocked.' };
    expect((await world.callbacks(id))[0]?.body).toMatchObject(reported);
  });

  it('is refused after the expiry, by the clock of the account', async () => {
    const hour = 3_600_000;
    const at = (ms: number) => new Date(Date.now() + ms).toISOString();
    const past = await world.openFor({ expires_at: at(-1) });
    const late = await world.openFor({ expires_at: at(hour) });
    const inTime = await world.openFor({ expires_at: at(3 * hour) });
    await world.openAhead([late.id, inTime.id], 2 * hour);
    for (const { id, url } of [past, late]) {
      expect((await world.approve(url)).status).toBe(410);
      expect(await world.rows(id)).toEqual([]);
    }
    expect((await world.approve(inTime.url)).status).toBe(303);
  });

  it('is refused from another site, and in a form larger than any page sends', async () => {
    const { id, url } = await world.openFor();
    const post = async (init: RequestInit) =>
      (await fetch(`${url}/decision`, { method: 'POST', ...init })).status;
    expect(await post({ headers: { 'sec-fetch-site': 'cross-site' } })).toBe(403);
    const body = new URLSearchParams({ decision: 'approve', reason: 'x'.repeat(5_000) });
    expect(await post({ body })).toBe(413);
    expect((await world.readSession(id))?.status).toBe('open');
    expect(await world.rows(id)).toEqual([]);
  });
});

describe('a void', () => {
  const voidPayment = (id: string) =>
    activities().voidPayment({ payment_id: id, instruction_id: `void:${id}` });

  it('before the settlement drops it, and no money moves', async () => {
    const id = await eventually('a void before the settlement', async () => {
      const { id } = await pay();
      return (await voidPayment(id)).outcome === 'voided' && id;
    });
    expect(await voidPayment(id)).toEqual({ outcome: 'voided' });
    const rows = await world.untilRows(id, (all) => all.every(({ done_at }) => done_at !== null));
    const states = rows.map(({ name, state }) => ({ name, state }));
    expect(states).toContainEqual({ name: 'settled', state: 'dropped' });
    expect(await listMovements(id)).toEqual([]);
  });

  it('at the moment of the settlement excludes it, in each of twenty payments', async () => {
    const opened = await Promise.all(Array.from({ length: 20 }, () => pay()));
    const outcomes = await Promise.all(
      opened.map(async ({ id }, index) => {
        const settles = (await world.rows(id)).find(({ name }) => name === 'settled');
        const wait = (settles?.due_at.getTime() ?? 0) - Date.now() + index * 20;
        await new Promise((resolve) => setTimeout(resolve, wait));
        return await retryUntilDone(() => voidPayment(id));
      }),
    );
    for (const [index, { id }] of opened.entries()) {
      const voided = outcomes[index]?.outcome === 'voided';
      const settled = { outcome: 'already_settled', amount: 4_950, currency: 'EUR' };
      expect(outcomes[index]).toEqual(voided ? { outcome: 'voided' } : settled);
      const rows = await world.untilRows(id, (all) => all.every(({ done_at }) => done_at !== null));
      const row = rows.find(({ name }) => name === 'settled');
      expect(row?.state).toBe(voided ? 'dropped' : 'sent');
      expect((await world.readSession(id))?.status).toBe(voided ? 'voided' : 'settled');
      expect((await world.callbacks(id)).some(({ name }) => name === 'settled')).toBe(!voided);
    }
  });
});

test('a report that could not be delivered is sent after a restart with the same id, and its money moves once', async () => {
  const connection = Connection.lazy({ address: '127.0.0.1:1' });
  const { id, url } = await world.openFor();
  await world.server.restart({ temporal: new Client({ connection }) });
  await world.approve(url);
  await eventually('a delivery that fails', async () => {
    const [first] = await world.rows(id);
    const { count = 0 } = world.server.deliveries.get(first?.body.callback_id ?? '') ?? {};
    return count >= 2 && (await listMovements(id)).length > 0;
  });
  const failed = await world.rows(id);
  expect(failed.map(({ state }) => state)).toEqual(['pending', 'pending']);
  expect(await listMovements(id)).toEqual(['settled 4950 EUR']);
  await world.server.restart();
  expect(await world.readSentSignals(id)).toHaveLength(2);
  const ids = (await world.callbacks(id)).map(({ body }) => body.callback_id);
  expect(ids.sort()).toEqual(failed.map(({ body }) => body.callback_id).sort());
  expect(await listMovements(id)).toEqual(['settled 4950 EUR']);
  await connection.close();
});

test('a settlement that was simulated moves the same money as the bank’s own', async () => {
  const { id, url } = await world.openFor();
  const bank_reference = (await world.readSession(id))?.bank_reference ?? '';
  const callback_id = `simulated_${randomUUID()}`;
  const occurred_at = new Date().toISOString();
  await world.reports.add({
    ...{ _id: callback_id, connector: 'sandbox', at: new Date() },
    ...({ resource: 'payment', resource_id: id, name: 'settled', bank_reference } as const),
    ...{ amount: 4_950, currency: 'EUR', body: { callback_id, occurred_at, bank_reference } },
  });
  await world.approve(url);
  await world.untilRows(id, (rows) => rows.filter(({ state }) => state === 'sent').length === 3);
  expect((await world.signals(id)).filter((name) => name === 'settled')).toHaveLength(2);
  expect(await listMovements(id)).toEqual(['settled 4950 EUR']);
});

describe('the magic amount', () => {
  it('66601 opens slowly the first time, and at once when it is repeated', async () => {
    const slowSessionMs = 2_000;
    await world.server.restart({ slowSessionMs });
    const input = instruction({ amount: 66_601 });
    const before = performance.now();
    await activities().openSession(input);
    const opened = performance.now();
    expect(opened - before).toBeGreaterThanOrEqual(slowSessionMs - 1);
    await world.server.restart({ slowSessionMs: AGES_MS });
    await activities().openSession(input);
    expect(performance.now() - opened).toBeLessThan(AGES_MS);
    await world.server.restart();
  });

  it.each([
    ['66602 is declined each time it is opened', { amount: 66_602 }, 'declined'],
    ['of no kind opens a session in live', { livemode: true }, 'live_not_supported'],
  ])('%s', async (_title, change, code) => {
    const input = instruction(change);
    const first = await activities().openSession(input);
    expect(first).toMatchObject({ outcome: 'declined', code });
    expect(await activities().openSession(input)).toEqual(first);
  });

  it.concurrent.each([
    [66_601, ['authorized', 'settled'], ['settled 66601 EUR']],
    [66_603, ['authorized'], []],
    [66_604, ['settled', 'authorized'], ['settled 66604 EUR']],
    [66_605, ['authorized', 'failed'], []],
  ])('%i is reported as %j, and moves %j', async (amount, names, movements) => {
    const { id } = await pay({ amount });
    expect(await world.readSentSignals(id)).toEqual(names);
    // The bank repeats both reports of 66604.
    expect(await world.rows(id)).toHaveLength(amount === 66_604 ? 4 : names.length);
    expect(await listMovements(id)).toEqual(movements);
  });
});

it('each page, redirect and refusal has the security headers', async () => {
  const { url } = await world.openFor();
  const { origin } = new URL(url);
  const nobody = 'x'.repeat(43);
  const post = (more: RequestInit = {}) => ({ method: 'POST', ...more });
  const decline = new URLSearchParams({ decision: 'decline' });
  const answers: [path: string, init: RequestInit, status: number][] = [
    [url, {}, 200],
    [`${url}/phone`, post({ body: new URLSearchParams({ phone: 'x' }) }), 422],
    [`${url}/decision`, post({ headers: { 'Sec-Fetch-Site': 'cross-site' } }), 403],
    [`${url}/decision`, post({ body: decline }), 303],
    [`${origin}/session/${nobody}`, {}, 404],
    [`${origin}/chain/${nobody}`, {}, 404],
    [`${origin}/chain/${nobody}/send`, post(), 404],
    [`${origin}/nowhere`, {}, 404],
  ];
  for (const [path, init, status] of answers) {
    const { headers, status: answered } = await fetch(path, { redirect: 'manual', ...init });
    expect([path, answered]).toEqual([path, status]);
    const policy = headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'none'; script-src 'self'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain('unsafe-');
    expect(Object.fromEntries(headers)).toMatchObject({
      ...{ 'x-frame-options': 'DENY', 'cache-control': 'no-store' },
      ...{ 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' },
    });
  }
});
