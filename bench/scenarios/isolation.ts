import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { EventDocument } from '../../src/store/events';
import { inLoops, timeWebhook } from '../measure/load';
import { type Receiver, startReceiver } from '../measure/receiver';
import { percentiles } from '../measure/statistics';
import type { Options } from '../options';
import { type DeliveryWorkers, startDeliveryWorkers } from '../product/deliveries';
import { buildRow, type Report } from '../report';
import type { Setting } from '../servers/config';
import { withStack } from '../servers/stack';
import { DELIVERED } from '../subject';
import { startHangingReceiver, startSilentNameServer } from './silent-servers';

const MERCHANTS = 20;
const WARM_UP = 60;
const EVENTS = 400;
const CONCURRENCY = 8;
const SILENT_NAMES = 6;
const SILENT_EVENTS = 5;
/** Time in which each waiting event has found out that its endpoint hangs. */
const SETTLE_MS = 120_000;
const COUNTED_MS = 60_000;
const POLL_MS = 200;
const RECOVERY_MS_MAX = 1_800_000;

/**
 * Measures what merchants that do not answer cost the others: one endpoint hangs, and the name
 * server of six is silent; then how the endpoint that hung gets its events.
 */
export async function runIsolation(options: Options, setting: Setting): Promise<Report> {
  const servers = [
    await startReceiver(),
    await startHangingReceiver(),
    await startSilentNameServer(),
  ] as const;
  try {
    return await withStack(setting, { parts: 'servers' }, async (stack) => {
      const [receiver, hanging, names] = servers;
      const addresses = { hangingUrl: hanging.url, names: names.address };
      const product = await startDeliveryWorkers(stack, addresses);
      try {
        return await measure(product, { receiver, hanging }, options, setting);
      } finally {
        await product.stop();
      }
    });
  } finally {
    for (const server of servers) server.close();
  }
}

interface Servers {
  receiver: Receiver;
  hanging: Awaited<ReturnType<typeof startHangingReceiver>>;
}

async function measure(
  product: DeliveryWorkers,
  { receiver, hanging }: Servers,
  { waitingEvents }: Options,
  { progress, signal }: Setting,
): Promise<Report> {
  const deliver = await openOthers(product, receiver, signal);
  const stuck: EventDocument[] = [];
  try {
    await progress.during('Warming up', () => deliver(WARM_UP));
    const alone = percentiles(await progress.during('Alone', () => deliver(EVENTS)));
    const merchant = await product.openMerchant(hanging.url);
    stuck.push(...(await product.recordEvents(merchant, waitingEvents)));
    for (let n = 0; n < SILENT_NAMES; n += 1) {
      const account_id = await product.openMerchant(`https://silent${n}.example.com/`);
      stuck.push(...(await product.recordEvents(account_id, SILENT_EVENTS)));
    }
    // At the pace of payments, since a burst would slow all merchants.
    await progress.during('Starting what hangs', () =>
      inLoops({ concurrency: CONCURRENCY, signal, count: stuck.length }, async (n) => {
        const event = stuck[n];
        if (event !== undefined) await product.deliver(event);
      }),
    );
    await progress.during('Waiting', () => sleep(SETTLE_MS, undefined, { signal }));
    const both = percentiles(await progress.during('Next to it', () => deliver(EVENTS)));
    const attempts = await progress.during('Counting attempts', () => countRate(product, signal));
    const atMost = product.hanging.max;
    const recovery = await progress.during('Recovering', () =>
      recover(product, merchant, hanging, signal),
    );
    return {
      columns: ['alone', 'next to 7 that hang'],
      rows: [
        buildRow('start to webhook, ms', alone, both),
        buildRow('start to webhook, p95', alone.p95, both.p95),
        buildRow('attempts that hang at once, at most', 0, atMost),
        buildRow('attempts a second of all that wait', 0, attempts),
        buildRow('webhooks/s once it answers', 0, recovery),
      ],
      notes: [
        `${EVENTS} events of ${MERCHANTS} merchants that answer, ${waitingEvents} of one that hangs`,
      ],
    };
  } finally {
    await Promise.allSettled(stuck.map(product.terminate));
  }
}

/** Opens merchants that answer. @returns what delivers so many events to them, and the times */
async function openOthers(product: DeliveryWorkers, receiver: Receiver, signal: AbortSignal) {
  const merchants: string[] = [];
  for (let n = 0; n < MERCHANTS; n += 1) {
    const { url, setSecret } = receiver.addEndpoint();
    const secret = `whsec_${randomBytes(32).toString('base64url')}`;
    setSecret(secret);
    merchants.push(await product.openMerchant(url, secret));
  }
  return async (count: number): Promise<number[]> => {
    const times: number[] = [];
    await inLoops({ concurrency: CONCURRENCY, signal, count }, async (n) => {
      const [event] = await product.recordEvents(merchants[n % MERCHANTS] ?? '', 1);
      if (event === undefined) return;
      const webhook = { id: event.resource_id, transition: DELIVERED };
      times.push(await timeWebhook(receiver, webhook, () => product.deliver(event)));
    });
    return times;
  };
}

async function countRate(product: DeliveryWorkers, signal: AbortSignal): Promise<number> {
  const before = await product.countAttempts();
  await sleep(COUNTED_MS, undefined, { signal });
  return ((await product.countAttempts()) - before) / (COUNTED_MS / 1_000);
}

/** @returns webhooks a second, from the first that is answered to the last */
async function recover(
  product: DeliveryWorkers,
  merchant: string,
  hanging: Servers['hanging'],
  signal: AbortSignal,
): Promise<number> {
  hanging.recover();
  const giveUpAt = performance.now() + RECOVERY_MS_MAX;
  let firstAt = performance.now();
  while (performance.now() < giveUpAt) {
    await sleep(POLL_MS, undefined, { signal });
    if (hanging.answered() === 0) firstAt = performance.now();
    else if ((await product.countPending(merchant)) === 0) break;
  }
  return hanging.answered() / ((performance.now() - firstAt) / 1_000);
}
