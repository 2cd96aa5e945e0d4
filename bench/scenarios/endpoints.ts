import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { WEBHOOK_QUEUE } from '../../src/domain/task-queues';
import { runCli } from '../measure/cli';
import { waitUntilIdle } from '../measure/cost';
import { inLoops } from '../measure/load';
import { cpuSince, type Pids, readCpu } from '../measure/process';
import { type Receiver, startReceiver } from '../measure/receiver';
import { percentiles, total } from '../measure/statistics';
import type { Options } from '../options';
import { createApi, openAccount } from '../product/api';
import { PAYMENT } from '../product/requests';
import { buildRow, type Report } from '../report';
import type { Setting } from '../servers/config';
import { type Stack, withStack } from '../servers/stack';
import { startHangingReceiver } from './silent-servers';

const ENDPOINTS = 16;
const CONCURRENCY = 2;
const WARM_UP = 10;
/** Longer than processes keep the endpoints that they read. */
const CACHED_MS = 3_000;
/** Highest ratio of the p95 with one that hangs to the p95 without. */
const RATIO_MAX = 1.5;

/**
 * Measures what an endpoint that hangs costs the fifteen others of its account, and what sixteen
 * cost compared with one.
 */
export async function runEndpoints({ payments }: Options, setting: Setting): Promise<Report> {
  const receivers = await Promise.all(Array.from({ length: ENDPOINTS }, startReceiver));
  const hanging = await startHangingReceiver();
  try {
    return await withStack(setting, { parts: 'product' }, (stack) =>
      compare(stack, { receivers, hanging }, { payments, setting }),
    );
  } finally {
    for (const server of [...receivers, hanging]) server.close();
  }
}

const NewEndpoint = z.object({ id: z.string(), signing_secret: z.string() });

interface Servers {
  receivers: readonly Receiver[];
  hanging: Awaited<ReturnType<typeof startHangingReceiver>>;
}

async function compare(
  stack: Stack,
  { receivers, hanging }: Servers,
  { payments, setting }: { payments: number; setting: Setting },
): Promise<Report> {
  const { progress, signal } = setting;
  const [first, ...added] = receivers;
  if (first === undefined) throw new Error('There is no receiver.');
  const { account_id, apiKey } = await openAccount(stack.env, first, setting);
  const api = createApi(stack.url, apiKey);
  const measure = async (title: string, count: number, others: readonly Receiver[]) => {
    const run = () => measureWebhooks(api, others, { count, concurrency: CONCURRENCY, signal });
    return await progress.during(title, run);
  };
  const measureCost = async (title: string, others: readonly Receiver[]) => {
    await measure('Warming up', WARM_UP, others);
    await waitUntilIdle(stack.temporal, [WEBHOOK_QUEUE], signal);
    const before = readCpu(stack.pids);
    const times = await measure(title, payments, others);
    await waitUntilIdle(stack.temporal, [WEBHOOK_QUEUE], signal);
    return { times, cpuMs: sumCpu(before, stack.pids, payments) };
  };
  try {
    const one = await measureCost('One endpoint', [first]);
    const ids: string[] = [];
    for (const receiver of added) {
      const { url, setSecret } = receiver.addEndpoint();
      const { id, signing_secret } = NewEndpoint.parse(
        await api.create('/v1/webhook-endpoints', { url }),
      );
      setSecret(signing_secret);
      ids.push(id);
    }
    await sleep(CACHED_MS, undefined, { signal });
    const all = await measureCost(`${ENDPOINTS} endpoints`, receivers);
    const update = ['webhook', 'update', account_id, '--env', 'sandbox'] as const;
    const change = [...update, '--endpoint', ids.at(-1) ?? '', '--url', hanging.url] as const;
    await runCli(change, z.object({}), stack.env, setting);
    const others = receivers.slice(0, -1);
    const answering = others.length;
    const alone = percentiles(all.times.filter(({ n }) => n < answering).map(({ ms }) => ms));
    const hung = await measure('One of them hangs', payments, others);
    const nextTo = percentiles(hung.map(({ ms }) => ms));
    return {
      columns: ['none hangs', 'one hangs'],
      rows: [
        buildRow(`create to webhook at ${answering} others, ms`, alone, nextTo),
        buildRow('create to webhook, p95', alone.p95, nextTo.p95),
        buildRow('attempts that hang', 0, hanging.attempts()),
        buildRow('processor ms per payment, 1 endpoint', one.cpuMs, null),
        buildRow(`processor ms per payment, ${ENDPOINTS} endpoints`, all.cpuMs, null),
      ],
      notes: [
        `${payments} payments in each, ${CONCURRENCY} at a time, with one event each`,
        `the ratio of the p95 is to be ${RATIO_MAX} at most`,
      ],
    };
  } finally {
    await api.close();
  }
}

/** Time of one webhook, at the receiver with that index. */
interface Arrival {
  n: number;
  ms: number;
}

/** Creates payments, each of which is done when its webhook has arrived at all receivers. */
async function measureWebhooks(
  api: ReturnType<typeof createApi>,
  receivers: readonly Receiver[],
  load: { count: number; concurrency: number; signal: AbortSignal },
): Promise<Arrival[]> {
  const arrivals: Arrival[] = [];
  await inLoops(load, async () => {
    const began = performance.now();
    const { id } = z.object({ id: z.uuid() }).parse(await api.create('/v1/payments', PAYMENT));
    const times = await Promise.all(
      receivers.map(({ arrival }) => arrival(id, 'awaiting_customer')),
    );
    arrivals.push(...times.map((at, n) => ({ n, ms: at - began })));
  });
  return arrivals;
}

/** Computes the processor time for a payment, without that of the load and of the receivers. */
function sumCpu(before: Record<string, number>, pids: Pids, payments: number): number {
  const { 'benchmark itself': _, ...processes } = cpuSince(before, pids, payments);
  return total(processes);
}
