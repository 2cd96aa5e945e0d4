import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { connectMongo } from '../../src/mongo';
import { temporalAccess } from '../../src/temporal/access';
import { connectTemporal } from '../../src/temporal/connect';
import { runCli } from '../cli-run';
import { readCpu } from '../cpu';
import { memoryOf } from '../memory';
import { timed } from '../mongo-only';
import { machineLine } from '../report';
import { type Machine, machine } from '../result';
import type { Setting } from '../servers';
import { dropDatabases, type Stack, startStack } from '../stack';
import { line } from '../table';
import { fillWaiting } from './fill';

/** Time for what the last start left to do. */
const SETTLE_MS = 5_000;
const REST_MS = 20_000;

const Orphans = z.object({ data: z.array(z.unknown()), checked: z.number() });

/** A process at rest. */
interface Rest {
  /** Processor time in ms a second. */
  cpu_ms_per_second: number;
  memory_mib: number | null;
}

export interface WaitingResult {
  machine: Machine;
  waiting: number;
  /** Workflows that the worker has begun; the first task of the others is a day away. */
  begun: number;
  fill_seconds: number;
  /** Processes by name, before any payment waited and while all do. */
  at_rest: Record<'none' | 'all', Record<string, Rest>>;
  orphan_list: { seconds: number; checked: number; orphans: number; rss_mib: number | null };
}

/**
 * Lets payments wait in the whole product, and measures it at rest, and `orphan list`. All that it
 * started or made is gone when it returns.
 * @param broken rejects when the run can't go on
 */
export async function runWaitingBench(
  waiting: number,
  setting: Setting,
  broken: Promise<never>,
): Promise<WaitingResult> {
  const stack = await startStack(setting);
  try {
    return await Promise.race([measure(waiting, stack, setting), stack.died, broken]);
  } finally {
    await setting.progress.during('Stopping', () => stack.stop());
    await dropDatabases(stack);
  }
}

async function measure(waiting: number, stack: Stack, setting: Setting): Promise<WaitingResult> {
  const { progress, signal } = setting;
  const mongo = await connectMongo(stack.mongodbUri, 'bench');
  const { mongodbDb } = stack.config;
  const temporal = connectTemporal(temporalAccess(stack.env));
  const atRest = (what: string) => progress.during(what, () => restOf(stack, signal));
  try {
    const none = await atRest('At rest with no payment');
    const filling = await timed(() =>
      progress.during('Letting payments wait', (task) =>
        fillWaiting({ db: mongo.db(mongodbDb), temporal, signal }, waiting, task.say),
      ),
    );
    const all = await atRest(`At rest with ${waiting} payments`);
    const { answer, ...listed } = await progress.during('orphan list', () =>
      runCli(['orphan', 'list'], Orphans, stack.env, setting),
    );
    return {
      machine: machine(),
      waiting,
      begun: filling.result,
      fill_seconds: filling.seconds,
      at_rest: { none, all },
      orphan_list: { ...listed, checked: answer.checked, orphans: answer.data.length },
    };
  } finally {
    await Promise.all([temporal.connection.close(), mongo.close()]);
  }
}

async function restOf({ pids }: Stack, signal: AbortSignal): Promise<Record<string, Rest>> {
  await sleep(SETTLE_MS, undefined, { signal });
  const before = readCpu(pids);
  await sleep(REST_MS, undefined, { signal });
  const spent = Object.entries(readCpu(pids)).map(([name, ms]) => {
    const cpu_ms_per_second = (ms - (before[name] ?? ms)) / (REST_MS / 1_000);
    const memory_mib = memoryOf(pids[name] ?? 0, 'now') ?? null;
    return [name, { cpu_ms_per_second, memory_mib }] as const;
  });
  return Object.fromEntries(spent);
}

/** Writes the figures for people. */
export function reportWaiting(result: WaitingResult): string {
  const { waiting, begun, fill_seconds, at_rest, orphan_list } = result;
  const text = ({ cpu_ms_per_second, memory_mib }: Rest) =>
    `${cpu_ms_per_second.toFixed(0)} ms/s, ${memory_mib ?? '-'} MiB`;
  const rows = Object.entries(at_rest.all).map(([name, all]) => {
    const none = at_rest.none[name];
    return line(name, none === undefined ? '-' : text(none), text(all));
  });
  const { seconds, checked, orphans, rss_mib } = orphan_list;
  return [
    '',
    machineLine(result.machine),
    `${waiting} payments wait, ${begun} of them begun by the worker, in ${fill_seconds.toFixed(0)} s`,
    '',
    line('processor and memory at rest', 'none waits', `${waiting} wait`),
    ...rows,
    '',
    `orphan list: ${seconds.toFixed(1)} s, ${checked} looked at, ${orphans} without a workflow, ` +
      `${rss_mib ?? '-'} MiB`,
    '',
  ].join('\n');
}
