import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { request } from 'undici';
import type { AuditResult } from '../../src/domain/audit';
import { LIFECYCLE_QUEUE } from '../../src/domain/task-queues';
import { getScheduleId } from '../../src/temporal/schedules';
import { LOOPBACK } from '../../stack/ports';
import { countDescribes } from '../measure/describes';
import { readMemory } from '../measure/process';
import type { Stack } from '../servers/stack';

const LOOK_MS = 200;

/** Result of one run of the audit. */
export interface AuditRun {
  checked: number;
  found: number;
  /** From its start to its end. */
  seconds: number;
  /** Resources a second, while it asks Temporal about each. */
  perSecond: number;
  /** Resources that were checked a second time, since a worker was killed. */
  again: number;
  /** Peak memory of the workers that ran it. */
  peak_mib: number | null;
}

/**
 * Runs the audit by its schedule, in a worker that has done nothing else.
 * @param killAfter number of checks after which the worker is killed, and starts again
 */
export async function runAudit(
  stack: Stack,
  signal: AbortSignal,
  killAfter?: number,
): Promise<AuditRun> {
  await restartWorker(stack, signal);
  const meter = createMeter(stack, signal);
  const began = performance.now();
  const handle = await startAudit(stack.temporal, signal);
  let result: AuditResult | undefined;
  const ended = handle.result().then((value) => {
    result = value;
  });
  let toKill = killAfter;
  while (result === undefined) {
    await Promise.race([ended, sleep(LOOK_MS, undefined, { signal })]);
    await meter.look();
    if (toKill === undefined || meter.described() < toKill) continue;
    toKill = undefined;
    await meter.restart();
  }
  const { checked, found } = result.orphans;
  return {
    ...{ checked, found, seconds: (performance.now() - began) / 1_000 },
    perSecond: meter.perSecond(),
    again: meter.described() - checked,
    peak_mib: meter.peakMib(),
  };
}

/** Runs the audit up to its first question to Temporal. @returns seconds, and peak memory of the worker */
export async function runOverduePart(stack: Stack, signal: AbortSignal) {
  await restartWorker(stack, signal);
  const meter = createMeter(stack, signal);
  const began = performance.now();
  const handle = await startAudit(stack.temporal, signal);
  while (meter.described() === 0) {
    await sleep(LOOK_MS, undefined, { signal });
    await meter.look();
  }
  const seconds = (performance.now() - began) / 1_000;
  await handle.terminate('measured');
  return { seconds, peak_mib: meter.peakMib() };
}

/** Starts the worker again, so that its memory is that of the measurement alone. */
async function restartWorker(stack: Stack, signal: AbortSignal): Promise<void> {
  await killWorker(stack, signal);
  const url = `http://${LOOPBACK}:${stack.config.metricsPorts.worker}/readyz`;
  const isReady = () =>
    request(url).then(
      async ({ statusCode, body }) => {
        await body.dump();
        return statusCode === 200;
      },
      () => false,
    );
  while (!(await isReady())) await sleep(LOOK_MS, undefined, { signal });
}

/** Kills the worker, and waits until it has been started again. */
async function killWorker({ pids }: Pick<Stack, 'pids'>, signal: AbortSignal): Promise<void> {
  const pid = pids['worker'];
  process.kill(pid ?? Number.NaN, 'SIGKILL');
  while (pids['worker'] === pid) await sleep(LOOK_MS, undefined, { signal });
}

/** Lets the schedule start a run, or takes the one that it has started at the hour. */
async function startAudit(temporal: Client, signal: AbortSignal) {
  const schedule = temporal.schedule.getHandle(getScheduleId('audit', LIFECYCLE_QUEUE));
  const { numActionsTaken: before } = (await schedule.describe()).info;
  await schedule.trigger();
  while (true) {
    const { info } = await schedule.describe();
    const last = info.numActionsTaken > before ? info.recentActions.at(-1)?.action : undefined;
    const action = info.runningActions.at(-1) ?? last;
    if (action?.type === 'startWorkflow') {
      const { workflowId, firstExecutionRunId } = action.workflow;
      return temporal.workflow.getHandle<() => Promise<AuditResult>>(
        workflowId,
        firstExecutionRunId,
      );
    }
    await sleep(LOOK_MS, undefined, { signal });
  }
}

/** Measures what the worker does, from its metrics, also after it was killed. */
function createMeter({ config, pids }: Stack, signal: AbortSignal) {
  let earlier = 0;
  let current = 0;
  let busyMs = 0;
  let lookedAt = performance.now();
  let peak: number | null = null;
  const look = async () => {
    const described = await readDescribes(config.metricsPorts.worker);
    const now = performance.now();
    if (described > current) busyMs += now - lookedAt;
    current = Math.max(current, described);
    lookedAt = now;
    peak = Math.max(peak ?? 0, readMemory(pids['worker'] ?? 0, 'peak') ?? 0) || null;
  };
  return {
    look,
    described: () => earlier + current,
    perSecond: () => ((earlier + current) * 1_000) / busyMs,
    peakMib: () => peak,
    restart: async () => {
      await look();
      await killWorker({ pids }, signal);
      earlier += current;
      current = 0;
    },
  };
}

/** Returns 0 while the worker starts. */
async function readDescribes(port: number): Promise<number> {
  try {
    const { body } = await request(`http://${LOOPBACK}:${port}/metrics`);
    return countDescribes(await body.text());
  } catch {
    return 0;
  }
}
