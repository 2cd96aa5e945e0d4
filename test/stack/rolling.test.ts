import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkflowHandle } from '@temporalio/client';
import type { MongoClient } from 'mongodb';
import { Agent, request } from 'undici';
import { z } from 'zod';
import { connectMongo } from '../../src/base/mongo';
import { AUDIT_WORKFLOW } from '../../src/domain/operators/audit-log';
import { environmentQueue, taskQueues } from '../../src/domain/task-queues';
import { ensureKeys } from '../../src/encryption/ensure-keys';
import { followKeyFile } from '../../src/encryption/service-keys';
import { createStores, ensureIndexes } from '../../src/store';
import type { DeliveryRow } from '../../src/store/deliveries';
import { connectTemporal } from '../../src/temporal/access';
import { getScheduleId } from '../../src/temporal/schedules';
import { type Child, startChild } from '../../stack/child-process';
import { NODE_PARTS, type NodePartName } from '../../stack/parts';
import { freePort } from '../../stack/ports';
import { eventually } from '../support/eventually';
import { type Hook, openHook } from '../support/hook';
import { idealPayment } from '../support/http';
import { mongodbUri, temporalAddress } from '../support/servers';
import { openAccount } from '../support/service';

const LANES = 2;
const BETWEEN = 4;
/** Long enough for a busy machine's balancer to look at `/readyz`. */
const DRAIN_MS = 3_000;
/** On a busy machine, where five processes may start at once. */
const START_MS_MAX = 150_000;

const Readiness = z.object({ missing: z.array(z.string()) });

const name = `rolling-${randomUUID().slice(0, 8)}`;
const running = new Map<string, Child>();
const folder = mkdtempSync(join(tmpdir(), `${name}-`));
let mongo: MongoClient;
let key: string;
let hook: Hook;
let balancer: ReturnType<typeof startBalancer>;
let ports: { api: readonly [number, number]; bank: number };

beforeAll(async () => {
  const { KEYS_FILE } = ensureKeys(folder);
  mongo = await connectMongo(mongodbUri(), name);
  const stores = createStores(mongo.db(name));
  await ensureIndexes(stores);
  const account = await openAccount(stores, {});
  key = account.key;
  hook = await openHook({ stores, keys: followKeyFile(KEYS_FILE) });
  await hook.register(account);
  ports = { api: [await freePort(), await freePort()], bank: await freePort() };
  const [one, two] = ports.api;
  balancer = startBalancer([`http://127.0.0.1:${one}`, `http://127.0.0.1:${two}`]);
  const names = ['worker-1', 'worker-2', 'bank', 'api-1', 'api-2'];
  await Promise.all(names.map(begin));
  await eventually('both APIs to be ready', async () => balancer.ready() === 2, START_MS_MAX);
}, 300_000);

afterAll(async () => {
  await balancer?.close();
  await Promise.all([...running.values()].map((child) => child.stop()));
  await hook?.close();
  await mongo?.db(name).dropDatabase();
  await mongo?.db(`${name}_sandbox_bank`).dropDatabase();
  await mongo?.close();
  rmSync(folder, { recursive: true, force: true });
});

async function begin(part: string): Promise<void> {
  const roles: Record<string, NodePartName> = { api: 'api', bank: 'sandbox_bank' };
  const role = roles[part.replace(/-.*/, '')] ?? 'worker';
  const [, environments] = /^worker-(sandbox|live)$/.exec(part) ?? [];
  const { script, graceMs } = NODE_PARTS[role];
  const child = await startChild({
    name: part,
    command: process.execPath,
    args: [resolve('dist', script)],
    env: {
      ...{ PATH: process.env['PATH'], DATA_DIR: folder },
      ...{ MONGODB_URI: mongodbUri(), MONGODB_DB: name },
      ...{ TEMPORAL_ADDRESS: temporalAddress(), TASK_QUEUE_PREFIX: name },
      ...(role === 'sandbox_bank' ? {} : { KEYS_FILE: join(folder, 'keys.json') }),
      ...{ KEYS_DIR: join(folder, 'keys'), WORKER_ENVIRONMENTS: environments },
      ...{ PORT: String(ports.api[part === 'api-2' ? 1 : 0]), DRAIN_MS: String(DRAIN_MS) },
      ...{ SANDBOX_BANK_PORT: String(ports.bank), SANDBOX_AUTOPLAY: 'off' },
      WEBHOOK_ALLOW_PRIVATE: 'sandbox',
    },
    logFile: join(folder, `${part}.log`),
    ipc: true,
    graceMs: graceMs + DRAIN_MS,
  });
  running.set(part, child);
}

/** As a rolling deployment does it: it ends in its own time, then another takes its place. */
async function restart(part: string): Promise<void> {
  const child = running.get(part);
  if (child === undefined) throw new Error(`${part} does not run.`);
  await child.stop();
  expect([part, await child.exited]).toEqual([part, 'ended with exit code 0']);
  await begin(part);
  const log = join(folder, `${part}.log`);
  await eventually(`${part} to serve, see ${log}`, () => serves(part), START_MS_MAX);
}

async function serves(part: string): Promise<boolean> {
  if (part.startsWith('api')) return balancer.ready() === 2;
  const beats = mongo.db(name).collection<{ _id: string }>('worker_heartbeats');
  const alive = await beats.countDocuments({ _id: { $regex: `:${running.get(part)?.pid}:` } });
  return alive === 1;
}

/** Restarts each process under load. @returns failed requests, and events that took two attempts */
async function restartAll(): Promise<string[]> {
  const faults: string[] = [];
  const since = new Date().toISOString();
  let done = 0;
  let isOver = false;
  let restarting = 'nothing';
  const ask = async (method: 'GET' | 'POST', path: string, status: number, body?: object) => {
    const answer = await balancer.ask(method, path, body);
    if (answer.status === status) return answer.text;
    throw new Error(`${restarting} restarts, ${method} ${path}: ${answer.status} ${answer.text}`);
  };
  const drive = async () => {
    const made = JSON.parse(await ask('POST', '/v1/payments', 201, idealPayment()));
    const simulate = `/v1/sandbox/payments/${made.id}/simulate`;
    await ask('POST', simulate, 200, { event: 'settled' });
    const read = async () => JSON.parse(await ask('GET', `/v1/payments/${made.id}`, 200));
    await eventually(`${made.id} to settle`, async () => (await read()).status === 'settled');
    done += 1;
  };
  const lane = async () => {
    while (!isOver && faults.length === 0)
      await drive().catch((error) => void faults.push(String(error)));
  };
  const lanes = Promise.all(Array.from({ length: LANES }, lane));
  const progress = async () => {
    const goal = done + BETWEEN;
    const isFar = async () => done >= goal || faults.length > 0;
    // Longer than the balancer waits, so that a request without an API is a fault of its own.
    await eventually('payments', isFar, START_MS_MAX);
  };
  try {
    for (const part of ['api-1', 'api-2', 'worker-1', 'worker-2']) {
      await progress();
      restarting = part;
      await restart(part);
    }
    await progress();
  } finally {
    isOver = true;
    await lanes;
  }
  const deliveries = mongo.db(name).collection<DeliveryRow>('deliveries');
  const isDelivered = async () =>
    (await deliveries.countDocuments({ status: { $ne: 'delivered' } })) === 0;
  await eventually('each event to be delivered', isDelivered);
  const count = await mongo.db(name).collection('events').countDocuments();
  expect([await deliveries.countDocuments(), hook.distinct().length]).toEqual([count, count]);
  for await (const { event_id, attempts } of deliveries.find({ position: { $gte: since } })) {
    const told = { attempts, posts: hook.about(event_id).length };
    if (told.attempts !== 1 || told.posts !== 1) faults.push(`${event_id} ${JSON.stringify(told)}`);
  }
  return faults;
}

const TRIES = 3;
/** Other processes may stall for longer, beyond the deadline of a request or a webhook. */
const STALL_MS = 500;

test('a rolling restart fails no request and uses up no webhook attempt', async () => {
  for (let left = TRIES; ; left -= 1) {
    const stalls = monitorEventLoopDelay({ resolution: 50 });
    stalls.enable();
    const faults = await restartAll();
    stalls.disable();
    // A machine that stalls fails requests by itself.
    if (faults.length > 0 && stalls.max / 1e6 > STALL_MS && left > 1) continue;
    return expect(faults).toEqual([]);
  }
}, 900_000);

test('a worker of one environment takes no tasks of the other, and the live one runs the schedules', async () => {
  const temporal = connectTemporal({ address: temporalAddress(), namespace: 'default' });
  const { lifecycleQueue } = taskQueues(name);
  const liveQueue = environmentQueue(lifecycleQueue, true);
  const audit = (taskQueue: string) =>
    temporal.workflow.start(AUDIT_WORKFLOW, { taskQueue, workflowId: randomUUID(), args: [] });
  // Only its start and its first task.
  const isUntouched = async (run: WorkflowHandle) => (await run.describe()).historyLength === 2;
  const serve = async (part: string, lacking: string) => {
    await begin(part);
    const lacks = async () => {
      const response = await fetch(`http://127.0.0.1:${ports.api[0]}/readyz`);
      return `${Readiness.parse(await response.json()).missing}` === lacking;
    };
    await eventually(part, lacks, START_MS_MAX);
  };
  const end = async (part: string) => await running.get(part)?.stop();
  const schedule = temporal.schedule.getHandle(getScheduleId('audit', lifecycleQueue));
  expect((await schedule.describe()).action.taskQueue).toBe(liveQueue);

  await Promise.all(['worker-1', 'worker-2'].map(end));
  await serve('worker-sandbox', 'worker_live');
  const live = await audit(liveQueue);
  await (await audit(lifecycleQueue)).result();
  expect(await isUntouched(live)).toBe(true);
  await end('worker-sandbox');

  await serve('worker-live', 'worker_sandbox');
  const sandbox = await audit(lifecycleQueue);
  await live.result();
  expect(await isUntouched(sandbox)).toBe(true);
  await sandbox.terminate();
  await temporal.connection.close();
}, 480_000);

const LOOK_MS = 100;
const LOOK_MS_MAX = 2_000;
/** A busy machine may silence both at once, or the servers that they ask. */
const READY_MS_MAX = 90_000;

/** Balancer before several APIs: it takes turns among those that say that they are ready. */
function startBalancer(urls: readonly string[]) {
  const agent = new Agent({ connections: 16 });
  const ready = new Set<string>();
  const over = new AbortController();
  let requests = 0;
  const look = async (url: string) => {
    while (!over.signal.aborted) {
      const isTaken = await isReady(url);
      if (isTaken === true) ready.add(url);
      if (isTaken === false) ready.delete(url);
      await sleep(LOOK_MS, undefined, { signal: over.signal }).catch(() => {});
    }
  };
  const looking = Promise.all(urls.map(look));
  return {
    ready: () => ready.size,
    /** Asks once, on a kept connection; nothing is tried again. */
    ask: async (method: 'GET' | 'POST', path: string, body?: object) => {
      const some = async () => ready.size > 0;
      await eventually(`${method} ${path}: an API that is ready`, some, READY_MS_MAX);
      const url = [...ready].sort()[requests % ready.size];
      requests += 1;
      const answer = await request(`${url}${path}`, {
        dispatcher: agent,
        method,
        headers: {
          authorization: `Bearer ${key}`,
          ...(method === 'POST' && { 'idempotency-key': randomUUID() }),
          ...(body && { 'content-type': 'application/json' }),
        },
        body: body === undefined ? null : JSON.stringify(body),
      });
      return { status: answer.statusCode, text: await answer.body.text() };
    },
    close: async () => {
      over.abort();
      await looking;
      await agent.close();
    },
  };
}

/** Undefined where no answer came in time, which changes nothing. */
async function isReady(url: string): Promise<boolean | undefined> {
  const signal = AbortSignal.timeout(LOOK_MS_MAX);
  try {
    const answer = await fetch(`${url}/readyz`, { signal });
    await answer.arrayBuffer();
    return answer.status === 200;
  } catch {
    return signal.aborted ? undefined : false;
  }
}
