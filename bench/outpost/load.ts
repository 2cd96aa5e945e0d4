import { setTimeout as sleep } from 'node:timers/promises';
import type { EventDocument } from '../../src/store/events';
import { inLoops } from '../measure/load';
import { cpuSince, readCpu } from '../measure/process';
import type { Counts } from '../measure/statistics';
import type { Receiver } from './receiver';
import type { System } from './system';
import { measureDelays, type Tally, tally } from './tally';

export interface Load {
  receiver: Receiver;
  /** Publishers of a burst. */
  concurrency: number;
  signal: AbortSignal;
}

/** Time without any arrival after which the rest counts as lost: longer than any restart takes. */
const SILENT_MS_MAX = 240_000;
/** Share of a burst that has arrived when a process is killed. */
const KILL_SHARE = 1 / 4;
/** Time in which an event that is delivered again arrives. */
const REPEATED_MS = 15_000;
const RETRY_MS = 100;
const RETRIES_MAX = 2_000;

export interface Burst {
  perSecond: number;
  /** Processor time in ms per event, by process. */
  cpuMs: Counts;
}

/** Publishes events as fast as they are accepted, and measures until the last has arrived. */
export async function runBurst(system: System, count: number, load: Load): Promise<Burst> {
  const events = system.buildEvents(count);
  const cpu = readCpu(system.pids);
  const began = performance.now();
  await publishAll(system, events, load);
  const { lastAt } = await awaitAll(system, events, load);
  await system.settle();
  return {
    perSecond: count / ((lastAt - began) / 1_000),
    cpuMs: cpuSince(cpu, system.pids, count),
  };
}

/** Publishes events at a steady rate. @returns ms from the start of each publish to its arrival */
export async function runSteadily(
  system: System,
  { count, perSecond }: { count: number; perSecond: number },
  load: Load,
): Promise<number[]> {
  const events = system.buildEvents(count);
  const starts = new Map<string, number>();
  const publishes: Promise<void>[] = [];
  const began = performance.now();
  for (const [n, event] of events.entries()) {
    const early = began + (n * 1_000) / perSecond - performance.now();
    if (early > 0) await sleep(early, undefined, { signal: load.signal });
    starts.set(event._id, performance.now());
    publishes.push(publishUntilAccepted(system, event, load.signal));
  }
  await Promise.all(publishes);
  await awaitAll(system, events, load);
  await system.settle();
  return measureDelays(starts, load.receiver.receipts);
}

export interface Kill extends Tally {
  /** Time from the kill to the arrival of the last event. */
  seconds: number | null;
}

/** Kills one of the processes amid a burst; it is started again after two seconds. */
export async function killAmidBurst(
  system: System,
  { part, count }: { part: string; count: number },
  load: Load,
): Promise<Kill> {
  const { receiver, signal } = load;
  const events = system.buildEvents(count);
  const ids = events.map(({ _id }) => _id);
  const wait = (share: number) =>
    receiver.waitFor(ids, { count: share * count, silentMs: SILENT_MS_MAX, signal });
  const publishing = publishAll(system, events, load);
  await wait(KILL_SHARE);
  process.kill(system.pids[part] ?? Number.NaN, 'SIGKILL');
  const killedAt = performance.now();
  await publishing;
  await wait(1);
  await sleep(REPEATED_MS, undefined, { signal });
  await system.settle();
  const result = tally(ids, receiver.receipts);
  return { ...result, seconds: result.lastAt && (result.lastAt - killedAt) / 1_000 };
}

async function publishAll(
  system: System,
  events: readonly EventDocument[],
  { concurrency, signal }: Load,
): Promise<void> {
  await inLoops({ count: events.length, concurrency, signal }, async (n) => {
    const event = events[n];
    if (event !== undefined) await publishUntilAccepted(system, event, signal);
  });
}

/** Publishes under one id until it is accepted, as an application has to that loses no event. */
async function publishUntilAccepted(
  system: System,
  event: EventDocument,
  signal: AbortSignal,
): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await system.publish(event);
    } catch (error) {
      if (attempt === RETRIES_MAX) throw error;
      await sleep(RETRY_MS, undefined, { signal });
    }
  }
}

/** @throws Error if an event does not arrive, although nothing was killed */
async function awaitAll(
  system: System,
  events: readonly EventDocument[],
  { receiver, signal }: Load,
): Promise<{ lastAt: number }> {
  const ids = events.map(({ _id }) => _id);
  await receiver.waitFor(ids, { count: ids.length, silentMs: SILENT_MS_MAX, signal });
  const { lost, lastAt } = tally(ids, receiver.receipts);
  if (lost > 0 || lastAt === null) throw new Error(`${system.name} lost ${lost} events.`);
  return { lastAt };
}
