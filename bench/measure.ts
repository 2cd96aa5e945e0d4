import type { Client } from '@temporalio/client';
import type { MongoClient } from 'mongodb';
import { type CpuTimes, readCpu } from './cpu';
import { type Load, type Run, runLoad } from './load';
import { between, type Counts, perPayment, readCommands } from './mongo-commands';
import { untilQuiet } from './quiet';
import type { Receiver } from './receiver';
import type { Subject } from './subject';

export interface Instruments {
  temporal: Client;
  mongo: MongoClient;
  receiver: Receiver;
  /** Process ids by name. */
  pids: Readonly<Record<string, number>>;
  idleCommands: Counts;
  signal: AbortSignal;
}

export interface MeasuredRun extends Run {
  paymentsPerSecond: number;
  mongoCommands: Counts;
  /**
   * Processor time in ms per payment, by process, including the servers' work for both subjects'
   * pollers.
   */
  cpuMs: CpuTimes;
}

/** Measures a run and its cost to the servers until the last of its workflows had ended. */
export async function measure(
  instruments: Instruments,
  subject: Subject,
  load: Pick<Load, 'payments' | 'concurrency'>,
): Promise<MeasuredRun> {
  const { temporal, mongo, receiver, pids, idleCommands, signal } = instruments;
  const { payments } = load;
  const commands = await readCommands(mongo);
  const cpu = readCpu(pids);
  const began = performance.now();
  const run = await runLoad(subject, receiver, { ...load, signal });
  const cpuAfter = readCpu(pids);
  await untilQuiet(temporal, subject.taskQueues, signal);
  const counts = between(commands, await readCommands(mongo));
  const elapsedMs = performance.now() - began;
  return {
    ...run,
    paymentsPerSecond: payments / (run.elapsedMs / 1_000),
    mongoCommands: perPayment(counts, idleCommands, { elapsedMs, payments }),
    cpuMs: Object.fromEntries(
      Object.entries(cpuAfter).map(([name, ms]) => [name, (ms - (cpu[name] ?? ms)) / payments]),
    ),
  };
}
