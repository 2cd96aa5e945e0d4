import { LOOPBACK } from '../../stack/ports';
import { openAccount } from '../account';
import { memoryOf } from '../memory';
import { type Receiver, startReceiver } from '../receiver';
import type { Setting } from '../servers';
import { dropDatabases, type Stack, startStack } from '../stack';
import { type Percentiles, percentiles } from '../statistics';
import { type Answered, atCapacity, atRate, openDoor } from './load';

const WARM_UP = 60;
const CAPACITY_SECONDS = 20;
const OVERLOAD_SECONDS = 30;
/** Creates that are asked for in the time of one that the service can do. */
export const TIMES = 3;
const MEMORY_MS = 500;

export interface OverloadFigures {
  /** Creates under way at once: the limit, and the load that capacity is measured with. */
  at_once: number;
  capacity: Group;
  overload: {
    /** Creates asked for in a second. */
    offered: number;
    accepted: Group;
    /** Answers by status, without those that were accepted. */
    refused: Record<string, number>;
    /** Times of the refusals; undefined where there was none. */
    refusals: Percentiles | undefined;
  };
  /** Ratio of the accepted creates' p99 to that at capacity. */
  ratio: number;
  /** Memory of the API and the worker in MiB: before, and the most during the overload. */
  memory: Record<'api' | 'worker', { before: number | undefined; most: number | undefined }>;
}

/** Creates that were answered with 201; times in ms. */
interface Group {
  count: number;
  per_second: number;
  ms: Percentiles;
}

/**
 * Measures creates at the service's capacity, and then three times as many, of which the API refuses
 * what is over its limit.
 * @param broken rejects when the run can't go on
 */
export async function runOverload(
  atOnce: number,
  setting: Setting,
  broken: Promise<never>,
): Promise<OverloadFigures> {
  const receiver = await startReceiver();
  try {
    const stack = await startStack(setting, undefined, { CREATES_AT_ONCE: String(atOnce) });
    try {
      return await Promise.race([measure(atOnce, stack, receiver, setting), stack.died, broken]);
    } finally {
      await setting.progress.during('Stopping', () => stack.stop());
      await dropDatabases(stack);
    }
  } finally {
    await receiver.close();
  }
}

async function measure(
  atOnce: number,
  stack: Stack,
  receiver: Receiver,
  { progress, signal }: Setting,
): Promise<OverloadFigures> {
  const { apiKey } = await openAccount(stack.env, receiver, signal);
  const door = openDoor(`http://${LOOPBACK}:${stack.config.port}`, apiKey);
  try {
    const loops = { door, concurrency: atOnce, signal };
    await progress.during('Warming up', () => atCapacity({ ...loops, count: WARM_UP }));
    const full = await progress.during('At capacity', () =>
      atCapacity({ ...loops, seconds: CAPACITY_SECONDS }),
    );
    const capacity = accepted(full);
    const offered = capacity.per_second * TIMES;
    const memory = watchMemory(stack.pids);
    const over = await progress
      .during(`At ${offered.toFixed(1)} a second`, () =>
        atRate({ door, perSecond: offered, seconds: OVERLOAD_SECONDS, signal }),
      )
      .finally(memory.stop);
    const taken = accepted(over);
    return {
      at_once: atOnce,
      capacity,
      overload: { offered, accepted: taken, ...refused(over) },
      ratio: taken.ms.p99 / capacity.ms.p99,
      memory: memory.seen,
    };
  } finally {
    await door.close();
  }
}

interface Answers {
  answers: readonly Answered[];
  seconds: number;
}

function accepted({ answers, seconds }: Answers): Group {
  const ms = answers.filter(({ status }) => status === 201).map((each) => each.ms);
  return { count: ms.length, per_second: ms.length / seconds, ms: percentiles(ms) };
}

function refused({ answers }: Answers) {
  const others = answers.filter(({ status }) => status !== 201);
  const counts: Record<string, number> = {};
  for (const { status } of others) counts[status] = (counts[status] ?? 0) + 1;
  const ms = others.map((each) => each.ms);
  return { refused: counts, refusals: ms.length === 0 ? undefined : percentiles(ms) };
}

/** Looks at the processes' memory until it is stopped. */
function watchMemory(pids: Readonly<Record<string, number>>) {
  const now = (name: string) => memoryOf(pids[name] ?? 0, 'now');
  const start = (name: string) => ({ before: now(name), most: now(name) });
  const seen: OverloadFigures['memory'] = { api: start('api'), worker: start('worker') };
  const timer = setInterval(() => {
    for (const [name, figures] of Object.entries(seen)) {
      figures.most = Math.max(figures.most ?? 0, now(name) ?? 0);
    }
  }, MEMORY_MS);
  return { seen, stop: () => clearInterval(timer) };
}
