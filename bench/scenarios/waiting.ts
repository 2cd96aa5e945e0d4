import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { runCli } from '../measure/cli';
import { cpuSince, readCpu, readMemory } from '../measure/process';
import type { Counts } from '../measure/statistics';
import type { Options } from '../options';
import { buildRow, type Report } from '../report';
import type { Setting } from '../servers/config';
import { type Stack, withStack } from '../servers/stack';
import { startWaiting } from './waiting-payments';

/** Time for what the last start left to do. */
const PAUSE_MS = 5_000;
const REST_SECONDS = 20;

const Orphans = z.object({ data: z.array(z.unknown()), checked: z.number() });

export async function runWaiting({ payments }: Options, setting: Setting): Promise<Report> {
  const { progress, signal } = setting;
  return await withStack(setting, { parts: 'product' }, async (stack) => {
    const none = await progress.during('At rest with no payment', () => measureRest(stack, signal));
    const began = performance.now();
    const begun = await progress.during('Starting workflows', (task) =>
      startWaiting({ ...stack, signal }, { total: payments }, task.say),
    );
    const startSeconds = (performance.now() - began) / 1_000;
    const title = `At rest with ${payments} payments`;
    const all = await progress.during(title, () => measureRest(stack, signal));
    const orphans = await progress.during('orphan list', () =>
      runCli(['orphan', 'list'], Orphans, stack.env, setting),
    );
    return {
      columns: ['none waits', `${payments} wait`],
      rows: [
        ...Object.entries(all).flatMap(([name, { cpu, mib }]) => [
          buildRow(`${name}, processor ms/s`, none[name]?.cpu ?? null, cpu),
          buildRow(`${name}, MiB`, none[name]?.mib ?? null, mib),
        ]),
        buildRow('starting the workflows, s', null, startSeconds),
        buildRow('orphan list, s', null, orphans.seconds),
        buildRow('orphan list, workflows checked', null, orphans.output.checked),
        buildRow('orphan list, orphans', null, orphans.output.data.length),
        buildRow('orphan list, MiB', null, orphans.peak_mib),
      ],
      notes: [
        `${begun} workflows were begun by the worker; the first task of the others is a day away`,
      ],
    };
  });
}

/** Processor time in ms a second, and memory, by process. */
type Rest = Record<string, { cpu: number; mib: number | null }>;

async function measureRest({ pids }: Stack, signal: AbortSignal): Promise<Rest> {
  await sleep(PAUSE_MS, undefined, { signal });
  const before: Counts = readCpu(pids);
  await sleep(REST_SECONDS * 1_000, undefined, { signal });
  return Object.fromEntries(
    Object.entries(cpuSince(before, pids, REST_SECONDS)).map(([name, cpu]) => [
      name,
      { cpu, mib: readMemory(pids[name] ?? 0, 'now') },
    ]),
  );
}
