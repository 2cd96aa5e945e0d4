import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from '@temporalio/client';
import { DefaultLogger, Runtime } from '@temporalio/worker';
import type { Db } from 'mongodb';
import { webhookWorkflowId } from '../../src/domain/event';
import { WEBHOOK_QUEUE } from '../../src/domain/task-queues';
import { keysFile } from '../../src/keys/file';
import { followRings } from '../../src/keys/ring';
import { createSealer } from '../../src/keys/seal';
import { createLogger } from '../../src/log';
import { connectMongo } from '../../src/mongo';
import { createStores, ensureIndexes } from '../../src/store';
import type { EventDocument } from '../../src/store/events';
import { temporalAccess } from '../../src/temporal/access';
import { startDeliveries } from '../../src/temporal/deliveries';
import { connectNative } from '../../src/temporal/native';
import { createResolver } from '../../src/webhooks/names';
import { type PostWebhook, postWebhook } from '../../src/webhooks/post';
import type { Child } from '../../stack/child-process';
import { childEnvironment, stackParts } from '../../stack/parts';
import { workflowBundles } from '../../worker/bundle';
import { createWorkers } from '../../worker/create-worker';
import { benchConfig, findServers, type Setting } from '../servers';
import { type Percentiles, percentiles } from '../statistics';
import { openMerchant, recordEvents, startHanging, startPrompt, startSilentNames } from './world';

const MERCHANTS = 20;
const WARM_UP = 60;
const EVENTS = 400;
const AT_ONCE = 8;
const STUCK_EVENTS = 300;
const SILENT_NAMES = 6;
const SILENT_EVENTS = 5;

export interface IsolationFigures {
  /** From the start of a delivery to its arrival at a merchant that answers, in ms. */
  alone: Percentiles;
  /** Figures beside merchants that don't answer. */
  beside: Percentiles;
  /** Ratio of the p95. */
  ratio: number;
  /** Most attempts under way at the endpoint that never answers. */
  held: number;
}

/**
 * Measures what merchants that don't answer cost the others: one endpoint that hangs, with 300
 * events, and six whose name server is silent.
 * @param broken rejects when the run can't go on
 */
export async function runIsolation(
  setting: Setting,
  broken: Promise<never>,
): Promise<IsolationFigures> {
  const config = await benchConfig(setting);
  mkdirSync(join(config.dataDir, 'logs'), { recursive: true });
  const env = childEnvironment(config, keysFile(config.dataDir), setting.env);
  const [servers = []] = stackParts(config, await findServers(config, setting), env);
  const children: Child[] = [];
  try {
    for (const part of servers) children.push(await part.start(setting.signal));
    return await Promise.race([measure(setting, env), broken]);
  } finally {
    await Promise.all(children.map((child) => child.stop()));
  }
}

async function measure({ progress }: Setting, env: NodeJS.ProcessEnv): Promise<IsolationFigures> {
  Runtime.install({ shutdownSignals: [], logger: new DefaultLogger('ERROR') });
  const mongo = await connectMongo(env['MONGODB_URI'] ?? '', 'bench');
  const db = mongo.db(env['MONGODB_DB'] ?? 'bench');
  const stores = createStores(db);
  await ensureIndexes(stores);
  const access = temporalAccess(env);
  const { namespace } = access;
  const connection = await connectNative(access);
  const rings = followRings(env['KEYS_FILE'] ?? '');
  const sealer = createSealer(rings.seal);
  const [prompt, hanging, names] = [
    await startPrompt(),
    await startHanging(),
    await startSilentNames(),
  ];
  const resolve = createResolver({ servers: [names.address] });
  const held = { now: 0, most: 0 };
  const post: PostWebhook = async (attempt) => {
    if (attempt.url !== hanging.url) return await postWebhook({ ...attempt, resolve });
    held.now += 1;
    held.most = Math.max(held.most, held.now);
    return await postWebhook(attempt).finally(() => {
      held.now -= 1;
    });
  };
  const workers = await createWorkers({
    connection,
    namespace,
    mongo,
    stores,
    rings,
    allowPrivateWebhooks: true,
    log: createLogger('bench', 'warn'),
    workflowBundles: await workflowBundles(),
    post,
  });
  const working = workers.run();
  const temporal = new Client({ connection, namespace });
  const tell = (events: EventDocument[]) =>
    startDeliveries({ temporal, webhookQueue: WEBHOOK_QUEUE, eager: true }, events);
  const merchants = await times(MERCHANTS, () => openMerchant(stores, sealer, prompt.url));
  const sample = (count: number) => deliver({ db, merchants, count, tell, ...prompt });
  const stuck: EventDocument[] = [];
  try {
    await progress.during('Warming up', () => sample(WARM_UP));
    const alone = percentiles(await progress.during('Alone', () => sample(EVENTS)));
    const stopped = await openMerchant(stores, sealer, hanging.url);
    stuck.push(...(await recordEvents(db, stopped, STUCK_EVENTS)));
    for (let n = 1; n <= SILENT_NAMES; n += 1) {
      const silent = await openMerchant(stores, sealer, `https://silent${n}.example.com/`);
      stuck.push(...(await recordEvents(db, silent, SILENT_EVENTS)));
    }
    // As payments bring them: told all at once, they would be a burst, whoever they are for.
    await progress.during('Starting what hangs', () => eachOf(stuck, (event) => tell([event])));
    const beside = percentiles(await progress.during('Beside it', () => sample(EVENTS)));
    return { alone, beside, ratio: beside.p95 / alone.p95, held: held.most };
  } finally {
    // What is left would go on for a day on a server that was given.
    await Promise.allSettled(stuck.map(({ _id }) => end(temporal, _id)));
    for (const each of [prompt, hanging, names]) each.close();
    workers.shutdown();
    await working;
    await connection.close();
    await db.dropDatabase();
    await mongo.close();
  }
}

async function end(temporal: Client, eventId: string): Promise<void> {
  await temporal.workflow.getHandle(webhookWorkflowId(eventId)).terminate('end of the benchmark');
}

/** Delivers events of all merchants in turn, some at once; gives how long each took. */
async function deliver(work: {
  db: Db;
  merchants: readonly string[];
  count: number;
  tell: (events: EventDocument[]) => Promise<void>;
  arrival: (id: string) => Promise<number>;
}): Promise<number[]> {
  const { db, merchants, count, tell, arrival } = work;
  const took: number[] = [];
  const owners = Array.from({ length: count }, (_, n) => merchants[n % merchants.length] ?? '');
  await eachOf(owners, async (owner) => {
    const [event] = await recordEvents(db, owner, 1);
    if (event === undefined) throw new Error('No event was recorded.');
    const arrived = arrival(event._id);
    const at = performance.now();
    await tell([event]);
    took.push((await arrived) - at);
  });
  return took;
}

/** Does something for each, some at once. */
async function eachOf<T>(all: readonly T[], work: (one: T) => Promise<void>): Promise<void> {
  const left = [...all];
  const some = async () => {
    for (let one = left.shift(); one !== undefined; one = left.shift()) await work(one);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, some));
}

async function times<T>(count: number, make: () => Promise<T>): Promise<T[]> {
  return await Promise.all(Array.from({ length: count }, make));
}

export function reportIsolation({ alone, beside, ratio, held }: IsolationFigures): string {
  const row = (name: string, { p50, p95, p99 }: Percentiles) =>
    `${name.padEnd(44)}${[p50, p95, p99].map((ms) => ms.toFixed(0)).join(' / ')}`;
  return [
    'From the start of a delivery to its webhook      p50 / p95 / p99 ms',
    row('alone', alone),
    row('beside one that hangs and six silent names', beside),
    `${'p95, beside / alone'.padEnd(44)}${ratio.toFixed(2)}`,
    `${'most attempts under way at the one that hangs'.padEnd(44)} ${held}`,
    '',
  ].join('\n');
}
