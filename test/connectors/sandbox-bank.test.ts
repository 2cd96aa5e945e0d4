import { randomBytes } from 'node:crypto';
import { NativeConnection, Worker } from '@temporalio/worker';
import { retryUntilDone } from '../support/insist';
import { runWhile } from '../support/run-while';
import { temporalAddress } from '../support/servers';
import { instruction } from './bank-server';
import { until, useBankWorld } from './bank-world';
import { probe } from './probe-workflow';

const world = useBankWorld();

const activities = () => world.server.bank.activities;

describe('instructions', () => {
  it('openSession gives the same answer to a repeat, also at once and after a restart', async () => {
    const input = instruction();
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => retryUntilDone(() => activities().openSession(input))),
    );
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
    expect(answers[0]).toMatchObject({
      outcome: 'opened',
      bank_reference: expect.stringMatching(/^SBX[0-9A-F]{12}$/),
    });
    const token = JSON.stringify(answers[0]).match(/session\/([\w-]{43})"/)?.[1];
    expect(token).toBeDefined();
    await world.server.restart();
    expect(JSON.stringify(await activities().openSession(input))).toContain(token);
  });

  it('reach it over its task queue', async () => {
    const connection = await NativeConnection.connect({ address: temporalAddress() });
    const taskQueue = `probe-${randomBytes(6).toString('hex')}`;
    const workflowsPath = require.resolve('./probe-workflow');
    const worker = await Worker.create({ connection, taskQueue, workflowsPath });
    const input = instruction();
    const answer = await runWhile(worker, () =>
      world.server.temporal.workflow.execute(probe, {
        taskQueue,
        workflowId: taskQueue,
        args: [world.server.taskQueue, input],
      }),
    );
    await connection.close();
    expect(answer).toEqual(await activities().openSession(input));
  });

  it('closeSession closes an open one, for good', async () => {
    const { id, url, input } = await world.openFor();
    for (let time = 0; time < 2; time += 1) {
      expect(await activities().closeSession({ payment_id: id })).toEqual({ outcome: 'closed' });
    }
    expect(await activities().openSession(input)).toMatchObject({ code: 'session_closed' });
    const page = await world.approve(url);
    expect([page.status, await world.rows(id)]).toEqual([410, []]);
  });

  it('closeSession before openSession makes it be declined', async () => {
    const input = instruction();
    await activities().closeSession({ payment_id: input.payment_id });
    expect(await activities().openSession(input)).toMatchObject({
      outcome: 'declined',
      code: 'session_closed',
    });
  });

  it('closeSession after the approval says so', async () => {
    const { id, url } = await world.openFor();
    await world.approve(url);
    expect(await activities().closeSession({ payment_id: id })).toEqual({
      outcome: 'already_authorized',
    });
  });

  it('refuses live payments', async () => {
    expect(await activities().openSession(instruction({ livemode: true }))).toMatchObject({
      outcome: 'declined',
      code: 'live_not_supported',
    });
  });

  it('reversePayment answers a repeat the same, and refuses another amount', async () => {
    const { id, url } = await world.openFor();
    await world.approve(url);
    await until(
      () => world.sessionOf(id),
      (session) => session?.status === 'settled',
    );
    const input = {
      payment_id: id,
      instruction_id: `reversal:${id}`,
      amount: 4_950,
      currency: 'EUR',
    };
    await world.holdLate(id, 'late');
    const first = await activities().reversePayment(input);
    expect(first).toMatchObject({ outcome: 'accepted' });
    expect(await activities().reversePayment(input)).toEqual(first);
    expect(await activities().reversePayment({ ...input, amount: 1 })).toMatchObject({
      outcome: 'refused',
    });
    expect((await world.sessionOf(id))?.status).toBe('reversed');
  });
});

describe('the customer’s decision', () => {
  it('approved: authorized at once, settled three seconds later, kept and signalled', async () => {
    const { id, url, input } = await world.openFor();
    const answer = await world.approve(url);
    expect([answer.status, answer.headers.get('location')]).toEqual([303, input.return_url]);
    const sent = await until(
      () => world.signals(id),
      (names) => names.length === 2,
    );
    expect(sent).toEqual(['authorized', 'settled']);
    const [first, second] = (await world.callbacks(id)).map(({ body }) =>
      Date.parse(body.occurred_at),
    );
    expect((second ?? 0) - (first ?? 0)).toBe(3_000);
    expect((await world.sessionOf(id))?.status).toBe('settled');
  });

  it('pressed ten times at once counts once', async () => {
    const { id, url } = await world.openFor();
    const answers = await Promise.all(Array.from({ length: 10 }, () => world.approve(url)));
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(303));
    expect((await world.rows(id)).map(({ name }) => name)).toEqual(['authorized', 'settled']);
  });

  it('comes too late by the clock of the account, and in time by it', async () => {
    const hour = 3_600_000;
    const at = (ms: number) => new Date(Date.now() + ms).toISOString();
    const late = await world.openFor({ expires_at: at(hour) });
    const inTime = await world.openFor({ expires_at: at(3 * hour) });
    await world.openAhead([late.id, inTime.id], 2 * hour);
    expect((await world.approve(late.url)).status).toBe(410);
    expect(await world.rows(late.id)).toEqual([]);
    expect((await world.approve(inTime.url)).status).toBe(303);
  });

  it('declined: failed with the code `declined` and the reason picked', async () => {
    const { id, url } = await world.openFor({ method: 'visa' });
    await world.decide(url, { decision: 'decline', reason: 'card_blocked' });
    await until(
      () => world.signals(id),
      (names) => names[0] === 'failed',
    );
    expect((await world.callbacks(id))[0]?.body).toMatchObject({
      code: 'declined',
      reason: 'The card is blocked.',
    });
  });

  it('is refused after the expiry', async () => {
    const { id, url } = await world.openFor({ expires_at: new Date(Date.now() - 1).toISOString() });
    expect((await world.approve(url)).status).toBe(410);
    expect(await world.rows(id)).toEqual([]);
  });

  it('is refused when another site sent it, and for an unknown session', async () => {
    const { id, url } = await world.openFor();
    const path = `${world.server.bank.url}${new URL(url).pathname}/decision`;
    const headers = { 'sec-fetch-site': 'cross-site' };
    expect((await fetch(path, { method: 'POST', headers })).status).toBe(403);
    expect(await world.rows(id)).toEqual([]);
    const unknown = await fetch(`${world.server.bank.url}/session/${'A'.repeat(43)}`);
    expect(unknown.status).toBe(404);
  });

  it('is refused, and nothing decided, when the form is larger than any page sends', async () => {
    const { id, url } = await world.openFor();
    const body = new URLSearchParams({ decision: 'approve', reason: 'x'.repeat(5_000) });
    expect((await fetch(`${url}/decision`, { method: 'POST', body })).status).toBe(413);
    expect((await world.sessionOf(id))?.status).toBe('open');
    expect(await world.rows(id)).toEqual([]);
  });

  it('of a payment that the product does not know is parked', async () => {
    const input = instruction();
    const answer = await activities().openSession(input);
    await world.approve(answer.outcome === 'opened' ? (answer.session_url ?? '') : '');
    const [row] = await until(
      () => world.rows(input.payment_id),
      ([first]) => first?.state === 'parked',
    );
    expect(row?.name).toBe('authorized');
    expect(await world.signals(input.payment_id)).toEqual([]);
  });
});

it('sets the security headers on each page, redirect and refusal', async () => {
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
    expect(headers.get('x-frame-options')).toBe('DENY');
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('referrer-policy')).toBe('no-referrer');
  }
});

it('answers its health check', async () => {
  const response = await fetch(`${world.server.bank.url}/healthz`);
  expect([response.status, await response.json()]).toEqual([200, { status: 'ok' }]);
});
