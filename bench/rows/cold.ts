import { type CpuTimes, readCpu } from '../cpu';
import { inLoops, runLoad } from '../load';
import { cpuSince } from '../measure';
import { total } from '../mongo-commands';
import { untilQuiet } from '../quiet';
import { type Percentiles, percentiles } from '../statistics';
import type { Subject, SubjectName } from '../subject';
import type { RowContext } from './context';

/** Payments that workers have made since they started, so that only their memory is cold. */
const WARM_UP_SHARE = 0.4;
const WARM_UP_MIN = 20;

/** Figures of the first callback of payments that wait; times in ms, of one callback. */
interface Figures {
  callbacks_per_second: number;
  callback_to_webhook: Percentiles;
  cpu_ms: number;
  cpu_ms_by_process: CpuTimes;
}

interface SubjectFigures {
  /** The worker remembers the payment's workflow. */
  warm: Figures;
  /** It remembers none, and replays the history. */
  cold: Figures;
  /** Time from callback to webhook at the median, cold over warm. */
  ratio: number;
}

export type ColdFigures = Record<SubjectName, SubjectFigures>;

/**
 * Measures callbacks of payments that have waited: first with the workers that made them, then with
 * workers that were started since.
 */
export async function measureCold(context: RowContext): Promise<ColdFigures> {
  const { subjects, restartWorkers, say } = context;
  const warm = {
    floor: await afterWaiting(context, subjects.floor, async () => {}),
    product: await afterWaiting(context, subjects.product, async () => {}),
  };
  const anew = (subject: Subject) => async () => {
    await restartWorkers();
    await warmUp(context, subject);
  };
  const cold = {
    floor: await afterWaiting(context, subjects.floor, anew(subjects.floor)),
    product: await afterWaiting(context, subjects.product, anew(subjects.product)),
  };
  const figures = (name: SubjectName): SubjectFigures => {
    const ratio = cold[name].callback_to_webhook.p50 / warm[name].callback_to_webhook.p50;
    const times = [warm[name], cold[name]].map((of) => of.callback_to_webhook.p50.toFixed(0));
    say(`cold  ${name}: callback to webhook ${times.join(' ms warm, ')} ms cold`);
    return { warm: warm[name], cold: cold[name], ratio };
  };
  return { floor: figures('floor'), product: figures('product') };
}

/** @param meanwhile what happens between the creation of the payments and their callbacks */
async function afterWaiting(
  context: RowContext,
  subject: Subject,
  meanwhile: () => Promise<void>,
): Promise<Figures> {
  const { instruments, options } = context;
  const { receiver, signal, pids, temporal } = instruments;
  const loops = { count: options.payments, concurrency: options.concurrency, signal };
  const ids: string[] = [];
  await inLoops(loops, async () => {
    const id = await subject.create();
    ids.push(id);
    await receiver.arrival(id, 'awaiting_customer');
  });
  await meanwhile();
  const callbackMs: number[] = [];
  const report = async (id: string | undefined, move: 'authorized' | 'settled') => {
    if (id === undefined) return Number.NaN;
    const sent = performance.now();
    const [at] = await Promise.all([receiver.arrival(id, move), subject.callback(id, move)]);
    return at - sent;
  };
  const cpu = readCpu(pids);
  const began = performance.now();
  await inLoops(loops, async (n) => void callbackMs.push(await report(ids[n], 'authorized')));
  const seconds = (performance.now() - began) / 1_000;
  const cpu_ms_by_process = cpuSince(cpu, pids, ids.length);
  await inLoops(loops, async (n) => void (await report(ids[n], 'settled')));
  for (const id of ids) receiver.take(id);
  await untilQuiet(temporal, subject.taskQueues, signal);
  return {
    callbacks_per_second: ids.length / seconds,
    callback_to_webhook: percentiles(callbackMs),
    cpu_ms: total(cpu_ms_by_process),
    cpu_ms_by_process,
  };
}

async function warmUp(
  { instruments: { receiver, signal }, options }: RowContext,
  subject: Subject,
): Promise<void> {
  const payments = Math.max(WARM_UP_MIN, Math.ceil(options.payments * WARM_UP_SHARE));
  await runLoad(subject, receiver, { payments, concurrency: options.concurrency, signal });
}
