import { randomBytes, randomUUID } from 'node:crypto';
import { Client } from '@temporalio/client';
import { DefaultLogger, Runtime } from '@temporalio/worker';
import { createLogger } from '../../src/base/log';
import { ENVIRONMENTS } from '../../src/domain/environment';
import { WEBHOOK_QUEUE } from '../../src/domain/task-queues';
import { webhookWorkflowId } from '../../src/domain/webhook/event';
import { createEncrypter } from '../../src/encryption/encrypter';
import { followKeyFile } from '../../src/encryption/service-keys';
import { startDeliveries } from '../../src/service/events/deliveries';
import { createStores, ensureIndexes } from '../../src/store';
import { endpointOwner } from '../../src/store/endpoints';
import type { EventDocument } from '../../src/store/events';
import { temporalAccess } from '../../src/temporal/access';
import { connectNative } from '../../src/temporal/native';
import { createResolver } from '../../src/webhooks/names';
import { type PostWebhook, postWebhook } from '../../src/webhooks/post';
import { workflowBundles } from '../../worker/bundle';
import { createWorkers } from '../../worker/create-worker';
import { inLoops, timeWebhook } from '../measure/load';
import { type Receiver, startReceiver } from '../measure/receiver';
import { percentiles } from '../measure/statistics';
import type { Options } from '../options';
import { buildSettledEvents } from '../product/documents';
import { buildRow, type Report } from '../report';
import type { Setting } from '../servers/config';
import { type Stack, withStack } from '../servers/stack';
import { DELIVERED } from '../subject';
import { startHangingReceiver, startSilentNameServer } from './silent-servers';

const MERCHANTS = 20;
const WARM_UP = 60;
const EVENTS = 400;
const CONCURRENCY = 8;
const HANGING_EVENTS = 300;
const SILENT_NAMES = 6;
const SILENT_EVENTS = 5;

/**
 * Measures what merchants that do not answer cost the others: one endpoint hangs, with 300 events,
 * and the name server of six is silent.
 */
export async function runIsolation(_options: Options, setting: Setting): Promise<Report> {
  const servers = [
    await startReceiver(),
    await startHangingReceiver(),
    await startSilentNameServer(),
  ] as const;
  try {
    return await withStack(setting, { parts: 'servers' }, async (stack) => {
      const [receiver, hanging, names] = servers;
      const product = await startProduct(stack, { hangingUrl: hanging.url, names: names.address });
      try {
        return await measure(product, { receiver, hangingUrl: hanging.url }, setting);
      } finally {
        await product.stop();
      }
    });
  } finally {
    for (const server of servers) server.close();
  }
}

/** Starts workers in this process, which count the attempts that hang and ask the silent server. */
async function startProduct(
  { env, mongo, db }: Stack,
  { hangingUrl, names }: { hangingUrl: string; names: string },
) {
  Runtime.install({ shutdownSignals: [], logger: new DefaultLogger('ERROR') });
  const stores = createStores(db);
  await ensureIndexes(stores);
  const access = temporalAccess(env);
  const connection = await connectNative(access);
  const keys = followKeyFile(env['KEYS_FILE'] ?? '');
  const encrypter = createEncrypter(keys.seal);
  const resolve = createResolver({ servers: [names] });
  const hanging = { now: 0, max: 0 };
  const post: PostWebhook = async (attempt) => {
    if (attempt.url !== hangingUrl) return await postWebhook({ ...attempt, resolve });
    hanging.now += 1;
    hanging.max = Math.max(hanging.max, hanging.now);
    return await postWebhook(attempt).finally(() => {
      hanging.now -= 1;
    });
  };
  const workers = await createWorkers({
    ...{ connection, namespace: access.namespace, keys, post },
    databases: new Map(ENVIRONMENTS.map((environment) => [environment, { mongo, stores }])),
    allowPrivateWebhooks: true,
    openLongReader: () => Promise.reject(new Error('No ledger is checked here.')),
    log: createLogger('bench', 'warn'),
    workflowBundles: await workflowBundles(),
  });
  const running = workers.run();
  const temporal = new Client({ connection, namespace: access.namespace });
  return {
    hanging,
    openMerchant: async (url: string, secret = 'whsec_unused'): Promise<string> => {
      const account_id = `acct_${randomUUID()}`;
      const sealed = await encrypter.encrypt(secret, endpointOwner(account_id, false));
      await stores.endpoints.set({ account_id, livemode: false, url, sealed, now: new Date(0) });
      return account_id;
    },
    recordEvents: async (account_id: string, count: number): Promise<EventDocument[]> => {
      const events = buildSettledEvents(account_id, count);
      await db.collection<EventDocument>('events').insertMany(events);
      return events;
    },
    deliver: (event: EventDocument) =>
      startDeliveries({ temporal, webhookQueue: WEBHOOK_QUEUE, eager: true }, [event]),
    /** Ends a delivery, which would otherwise go on for a day on a server that keeps running. */
    terminate: async ({ _id }: EventDocument): Promise<void> => {
      await temporal.workflow.getHandle(webhookWorkflowId(_id)).terminate('end of the benchmark');
    },
    stop: async () => {
      workers.shutdown();
      await running;
      await connection.close();
    },
  };
}

async function measure(
  product: Awaited<ReturnType<typeof startProduct>>,
  { receiver, hangingUrl }: { receiver: Receiver; hangingUrl: string },
  { progress, signal }: Setting,
): Promise<Report> {
  const merchants: string[] = [];
  for (let n = 0; n < MERCHANTS; n += 1) {
    const { url, setSecret } = receiver.addEndpoint();
    const secret = `whsec_${randomBytes(32).toString('base64url')}`;
    setSecret(secret);
    merchants.push(await product.openMerchant(url, secret));
  }
  const loops = { concurrency: CONCURRENCY, signal };
  const deliver = async (count: number): Promise<number[]> => {
    const times: number[] = [];
    await inLoops({ ...loops, count }, async (n) => {
      const [event] = await product.recordEvents(merchants[n % MERCHANTS] ?? '', 1);
      if (event === undefined) return;
      const webhook = { id: event.resource_id, transition: DELIVERED };
      times.push(await timeWebhook(receiver, webhook, () => product.deliver(event)));
    });
    return times;
  };
  const stuck: EventDocument[] = [];
  try {
    await progress.during('Warming up', () => deliver(WARM_UP));
    const alone = percentiles(await progress.during('Alone', () => deliver(EVENTS)));
    const silent = Array.from(
      { length: SILENT_NAMES },
      (_, n) => `https://silent${n}.example.com/`,
    );
    for (const url of [hangingUrl, ...silent]) {
      const count = url === hangingUrl ? HANGING_EVENTS : SILENT_EVENTS;
      stuck.push(...(await product.recordEvents(await product.openMerchant(url), count)));
    }
    // At the pace of payments, since a burst would slow all merchants.
    await progress.during('Starting what hangs', () =>
      inLoops({ ...loops, count: stuck.length }, async (n) => {
        const event = stuck[n];
        if (event !== undefined) await product.deliver(event);
      }),
    );
    const both = percentiles(await progress.during('Next to it', () => deliver(EVENTS)));
    return {
      columns: ['alone', 'next to 7 that hang'],
      rows: [
        buildRow('start to webhook, ms', alone, both),
        buildRow('start to webhook, p95', alone.p95, both.p95),
        buildRow('attempts that hang at once, at most', 0, product.hanging.max),
      ],
      notes: [`${EVENTS} events of ${MERCHANTS} merchants that answer`],
    };
  } finally {
    await Promise.allSettled(stuck.map(product.terminate));
  }
}
