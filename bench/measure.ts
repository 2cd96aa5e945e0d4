import type { Client } from '@temporalio/client';
import type { MongoClient } from 'mongodb';
import { type CpuTimes, readCpu } from './cpu';
import { between, type Counts, perPayment, readCommands } from './mongo-commands';
import { untilQuiet } from './quiet';
import type { Receiver } from './receiver';

/** Instruments that every row is measured with. */
export interface Gauges {
  temporal: Client;
  mongo: MongoClient;
  receiver: Receiver;
  /** Process ids by name, kept current. */
  pids: Readonly<Record<string, number>>;
  signal: AbortSignal;
}

export interface Instruments extends Gauges {
  idleCommands: Counts;
}

/** Work that is measured: as much of it as `count` says. */
export interface Work<R> {
  count: number;
  taskQueues: readonly string[];
  run(): Promise<R>;
}

/** Cost of a run, by each of what it made. */
export interface Cost {
  perSecond: number;
  mongoCommands: Counts;
  /** Processor time in ms by process, including the servers' work for both subjects' pollers. */
  cpuMs: CpuTimes;
}

/** Measures a run and its cost to the servers until the last of its workflows had ended. */
export async function measure<R>(
  { temporal, mongo, pids, idleCommands, signal }: Instruments,
  { count, taskQueues, run }: Work<R>,
): Promise<R & Cost> {
  const commands = await readCommands(mongo);
  const cpu = readCpu(pids);
  const began = performance.now();
  const result = await run();
  const tookMs = performance.now() - began;
  const cpuMs = cpuSince(cpu, pids, count);
  await untilQuiet(temporal, taskQueues, signal);
  const counts = between(commands, await readCommands(mongo));
  const elapsedMs = performance.now() - began;
  return {
    ...result,
    perSecond: count / (tookMs / 1_000),
    mongoCommands: perPayment(counts, idleCommands, { elapsedMs, payments: count }),
    cpuMs,
  };
}

/** Processor time in ms since `before`, by process, for each of `count`. */
export function cpuSince(
  before: CpuTimes,
  pids: Readonly<Record<string, number>>,
  count: number,
): CpuTimes {
  const after = Object.entries(readCpu(pids));
  return Object.fromEntries(
    after.map(([name, ms]) => [name, (ms - (before[name] ?? ms)) / count] as const),
  );
}
