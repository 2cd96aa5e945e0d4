import { randomUUID } from 'node:crypto';
import { Pool } from 'undici';
import { z } from 'zod';
import { SANDBOX_CONNECTOR } from '../../src/routing';
import { signPayload } from '../../src/webhooks/attempt';
import { runCli } from '../measure/cli';
import { inLoops } from '../measure/load';
import { type Receiver, startReceiver } from '../measure/receiver';
import { percentiles } from '../measure/statistics';
import type { AttackName, Options } from '../options';
import { createApi, openAccount } from '../product/api';
import { PAYMENT, RECIPIENT } from '../product/requests';
import { buildRow, type Report, type Row } from '../report';
import type { Setting } from '../servers/config';
import { type Stack, withStack } from '../servers/stack';
import { startHangingReceiver } from './silent-servers';

/** Creates in flight of the merchant that is measured, and calls in flight of the hostile one. */
const CONCURRENCY = 2;
const HOSTILE = 100;
const WARM_UP = 20;
/** Payments whose webhooks hang. */
const HANGING = 300;
const SLOW_AMOUNT = 66_601;

/** Abuse by the hostile merchant: once before the measurement, and repeated next to it. */
interface Attack {
  prepare?: () => Promise<void>;
  call?: () => Promise<number>;
}

interface Result {
  createMs: number[];
  webhookMs: number[];
  refused: number;
}

/**
 * Measures what a hostile merchant costs another one, under the limits that the product has: creates
 * and their webhooks alone, then next to seven kinds of abuse.
 */
export async function runNeighbors(
  { payments, attacks }: Pick<Options, 'payments' | 'attacks'>,
  setting: Setting,
): Promise<Report> {
  const [receiver, hanging] = [await startReceiver(), await startHangingReceiver()];
  // As behind a proxy, so that the flood of sign-ins has many addresses.
  const env = { ...setting.env, TRUSTED_PROXIES: '1' };
  try {
    return await withStack({ ...setting, env }, { parts: 'product', limited: true }, (stack) =>
      compare(stack, { receiver, hangingUrl: hanging.url }, { payments, names: attacks, setting }),
    );
  } finally {
    receiver.close();
    hanging.close();
  }
}

async function compare(
  stack: Stack,
  { receiver, hangingUrl }: { receiver: Receiver; hangingUrl: string },
  {
    payments,
    names,
    setting,
  }: { payments: number; names: readonly AttackName[]; setting: Setting },
): Promise<Report> {
  const { progress, signal } = setting;
  const { apiKey } = await openAccount(stack.env, receiver, setting);
  const api = createApi(stack.url, apiKey);
  const pool = new Pool(stack.url, { connections: HOSTILE });
  const measure = (count: number) => measureCreates(api, receiver, { count, signal });
  try {
    await progress.during('Warming up', () => measure(WARM_UP));
    const rows: Row[] = [];
    const notes = [`${payments} creates in each row; ${HOSTILE} hostile calls in flight`];
    const attacks = await buildAttacks({ stack, pool, hangingUrl }, setting);
    for (const name of names) {
      const { prepare, call } = attacks[name];
      await progress.during('Waiting for the rest of the last abuse', () =>
        waitForCalm(api, signal),
      );
      // Again each time, since a machine is not equally fast all the time.
      const alone = await progress.during(`Alone, before: ${name}`, () => measure(payments));
      if (prepare) await progress.during(`Preparing: ${name}`, prepare);
      const flood = startFlood(call, signal);
      const nextTo = await progress
        .during(`Next to: ${name}`, () => measure(payments))
        .finally(flood.stop);
      rows.push(...buildRows(name, alone, nextTo));
      notes.push(`${name}: ${flood.summary()}`);
    }
    return { columns: ['alone', 'next to it'], rows, notes };
  } finally {
    await Promise.all([api.close(), pool.destroy()]);
  }
}

function buildRows(name: string, alone: Result, nextTo: Result): Row[] {
  const p95 = (sample: readonly number[]) => (sample.length === 0 ? null : percentiles(sample).p95);
  return [
    buildRow(`${name}: create, p95 ms`, p95(alone.createMs), p95(nextTo.createMs)),
    buildRow(`${name}: create to webhook, p95 ms`, p95(alone.webhookMs), p95(nextTo.webhookMs)),
    buildRow(`${name}: 503s`, alone.refused, nextTo.refused),
  ];
}

const Created = z.object({ id: z.uuid(), status: z.string() });

/** Creates payments, each of which the customer could pay when its webhook arrives. */
async function measureCreates(
  api: ReturnType<typeof createApi>,
  receiver: Receiver,
  load: { count: number; signal: AbortSignal },
): Promise<Result> {
  const result: Result = { createMs: [], webhookMs: [], refused: 0 };
  await inLoops({ ...load, concurrency: CONCURRENCY }, async () => {
    const began = performance.now();
    const { status, text } = await api.post('/v1/payments', PAYMENT);
    if (status !== 201) {
      if (status === 503) result.refused += 1;
      return;
    }
    result.createMs.push(performance.now() - began);
    const payment = Created.parse(JSON.parse(text));
    if (payment.status === 'created') return;
    result.webhookMs.push((await receiver.arrival(payment.id, payment.status)) - began);
  });
  return result;
}

const CALM_MS = 400;
const CALM_CALLS = 10;
const CALM_CALLS_MAX = 300;

/** Creates one payment after another until many in a row are fast: what abuse left behind is done. */
async function waitForCalm(api: ReturnType<typeof createApi>, signal: AbortSignal): Promise<void> {
  for (let calls = 0, fast = 0; fast < CALM_CALLS && calls < CALM_CALLS_MAX; calls += 1) {
    signal.throwIfAborted();
    const began = performance.now();
    await api.post('/v1/payments', PAYMENT);
    fast = performance.now() - began < CALM_MS ? fast + 1 : 0;
  }
}

/** Repeats a call in many loops. */
function startFlood(call: Attack['call'], signal: AbortSignal) {
  const counts = new Map<number | string, number>();
  let stopped = false;
  const loop = async (): Promise<void> => {
    while (call !== undefined && !stopped && !signal.aborted) {
      const status = await call().catch(() => 'failed');
      if (!stopped) counts.set(status, (counts.get(status) ?? 0) + 1);
    }
  };
  const loops = Array.from({ length: HOSTILE }, loop);
  return {
    /** Waits for what is in flight, so that the next attack begins alone. */
    stop: async () => {
      stopped = true;
      await Promise.all(loops);
    },
    summary: () =>
      [...counts].map(([status, count]) => `${count} x ${status}`).join(', ') || 'no calls',
  };
}

const NewAccount = z.object({
  account_id: z.string(),
  sandbox_key: z.string(),
  dashboard_email: z.string(),
  dashboard_password: z.string(),
});
const NewKey = z.object({ secret: z.string() });

async function buildAttacks(
  { stack, pool, hangingUrl }: { stack: Stack; pool: Pool; hangingUrl: string },
  setting: Setting,
): Promise<Record<AttackName, Attack>> {
  const { env, url } = stack;
  const create = ['account', 'create', '--name', 'Hostile', '--keep-password'] as const;
  const account = await runCli(create, NewAccount, env, setting);
  const newKey = ['connector', 'key', 'create', SANDBOX_CONNECTOR] as const;
  const { secret } = await runCli(newKey, NewKey, env, setting);
  const api = createApi(url, account.sandbox_key);

  const send = async (
    path: string,
    headers: Record<string, string>,
    body?: string,
    method: 'GET' | 'POST' | 'PATCH' | 'DELETE' = body === undefined ? 'GET' : 'POST',
  ) => {
    const response = await pool.request({ path, method, headers, body: body ?? null });
    // An export is read to its end.
    await response.body.dump({ limit: Number.MAX_SAFE_INTEGER });
    return response;
  };
  const signIn = (email: string, password: string, address: string) =>
    send(
      '/dashboard/sign-in',
      { 'content-type': 'application/x-www-form-urlencoded', 'x-forwarded-for': address },
      new URLSearchParams({ email, password }).toString(),
    );
  const { dashboard_email, dashboard_password } = account;
  const signedIn = await signIn(dashboard_email, dashboard_password, '192.0.2.1');
  const cookie = [signedIn.headers['set-cookie'] ?? []]
    .flat()
    .map((text) => text.split(';')[0])
    .join('; ');
  const post = async (path: string, body: unknown) => (await api.post(path, body)).status;
  const payment = Created.parse(await api.create('/v1/payments', PAYMENT));
  const simulate = () => post(`/v1/sandbox/payments/${payment.id}/simulate`, { event: 'settled' });
  const report = () => {
    const body = JSON.stringify({
      ...{ resource: 'payment', resource_id: randomUUID(), event: 'settled' },
      ...{ callback_id: randomUUID(), occurred_at: new Date().toISOString() },
    });
    const signature = signPayload(secret, body, Math.floor(Date.now() / 1_000));
    const path = `/connectors/${SANDBOX_CONNECTOR}/callbacks`;
    return send(path, { 'connector-signature': signature }, body);
  };
  let visitors = 0;
  const guess = () => {
    visitors += 1;
    const network = `2001:db8:${Math.floor(visitors / 65_536).toString(16)}`;
    const address = `${network}:${(visitors % 65_536).toString(16)}::1`;
    return signIn(`visitor${visitors}@example.com`, 'a wrong password', address);
  };
  const exports = ['/payments.csv', '/overview', '/webhooks/send-failed?from=2000-01-01'];
  let exported = 0;
  const visit = () => {
    exported += 1;
    return send(`/dashboard/sandbox${exports[exported % exports.length]}`, { cookie });
  };
  const readStatus = async (call: ReturnType<typeof send>) => (await call).statusCode;
  const setEndpoint = ['webhook', 'set', account.account_id, '--env', 'sandbox'] as const;
  const writes: (() => Promise<number>)[] = [];
  let written = 0;
  const prepareWrites = async () => {
    const Id = z.object({ id: z.string() });
    const make = async (path: string, body: object) => Id.parse(await api.create(path, body)).id;
    const settings = { url: hangingUrl, enabled_events: ['payment.settled'] };
    const endpoint = `/v1/webhook-endpoints/${await make('/v1/webhook-endpoints', settings)}`;
    const recipient = `/v1/payout-recipients/${await make('/v1/payout-recipients', RECIPIENT)}`;
    const authorization = `Bearer ${account.sandbox_key}`;
    const headers = { authorization, 'content-type': 'application/json' };
    const events = await pool.request({ path: '/v1/events?limit=1', method: 'GET', headers });
    const [event] = z.object({ data: z.array(Id) }).parse(await events.body.json()).data;
    const write = (method: 'POST' | 'PATCH' | 'DELETE', path: string, body?: object) =>
      readStatus(send(path, headers, body && JSON.stringify(body), method));
    writes.push(
      () => write('PATCH', endpoint, { description: randomUUID() }),
      () => write('POST', `${endpoint}/roll-secret`, {}),
      () => write('POST', `${endpoint}/test`, {}),
      () => write('POST', `/v1/events/${event?.id}/redeliver`, {}),
      () => write('DELETE', recipient),
    );
  };
  const write = async () => {
    written += 1;
    return (await writes[written % writes.length]?.()) ?? 0;
  };
  return {
    'slow-creates': { call: () => post('/v1/payments', { ...PAYMENT, amount: SLOW_AMOUNT }) },
    'sign-in-flood': { call: () => readStatus(guess()) },
    'dashboard-exports': { call: () => readStatus(visit()) },
    'simulation-flood': { call: simulate },
    writes: { prepare: prepareWrites, call: write },
    'callback-flood': { call: () => readStatus(report()) },
    'hanging-endpoint': {
      prepare: async () => {
        await runCli([...setEndpoint, '--url', hangingUrl], z.object({}), env, setting);
        const load = { count: HANGING, concurrency: 8, signal: setting.signal };
        await inLoops(load, async () => void (await api.create('/v1/payments', PAYMENT)));
      },
    },
  };
}
