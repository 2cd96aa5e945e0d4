import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import type { MongoClient } from 'mongodb';
import { countHistories, type HistoryCounts } from './histories';
import type { Run } from './load';
import { perPayment, readCommands, subtract } from './mongo-commands';
import { cpuSince, type Pids, readCpu } from './process';
import type { Counts } from './statistics';

const POLL_MS = 100;
const IDLE_MS_MAX = 20_000;
/** Number of payments of a run whose histories are read. */
const HISTORIES_READ = 10;

export interface Instruments {
  temporal: Client;
  mongo: MongoClient;
  pids: Pids;
  /** MongoDB commands a second while nothing is in flight. */
  idleCommands: Counts;
  signal: AbortSignal;
}

export interface Sample extends Run {
  perSecond: number;
  histories: HistoryCounts;
  mongoCommands: Counts;
  /** Processor time in ms by process, including the servers' work for all pollers. */
  cpuMs: Counts;
}

/** Measures a run of `count` resources, and what it costs until the last of its workflows closes. */
export async function measureRun(
  { temporal, mongo, pids, idleCommands, signal }: Instruments,
  { count, taskQueues, run }: { count: number; taskQueues: readonly string[]; run(): Promise<Run> },
): Promise<Sample> {
  const commands = await readCommands(mongo);
  const cpu = readCpu(pids);
  const began = performance.now();
  const result = await run();
  const seconds = (performance.now() - began) / 1_000;
  const cpuMs = cpuSince(cpu, pids, count);
  await waitUntilIdle(temporal, taskQueues, signal);
  const elapsedMs = performance.now() - began;
  const sent = subtract(commands, await readCommands(mongo));
  return {
    ...result,
    perSecond: count / seconds,
    histories: await countHistories(temporal, result.workflowIds.slice(-HISTORIES_READ)),
    mongoCommands: perPayment(sent, idleCommands, { elapsedMs, payments: count }),
    cpuMs,
  };
}

/**
 * Waits until no workflow of these queues runs, since late work belongs to the run that caused it.
 * @throws Error when some still run after `idleMsMax`
 */
export async function waitUntilIdle(
  temporal: Client,
  taskQueues: readonly string[],
  signal: AbortSignal,
  idleMsMax = IDLE_MS_MAX,
): Promise<void> {
  const queues = taskQueues.map((queue) => `'${queue}'`).join(', ');
  const query = `ExecutionStatus = 'Running' AND TaskQueue IN (${queues})`;
  const deadline = Date.now() + idleMsMax;
  for (;;) {
    const { count } = await temporal.workflow.count(query);
    if (count === 0) return;
    if (Date.now() > deadline) throw new Error(`${count} workflows of ${queues} do not close.`);
    await sleep(POLL_MS, undefined, { signal });
  }
}
