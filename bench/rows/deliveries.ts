import { countHistories, type HistoryFigures } from '../histories';
import { inLoops } from '../load';
import { type Cost, measure } from '../measure';
import { total } from '../mongo-commands';
import { meanCounts, median, type Percentiles, percentiles } from '../statistics';
import { type Subject, type SubjectName, TOLD_ALONE } from '../subject';
import type { RowContext } from './context';

/** Number of deliveries whose histories are read. */
const SAMPLE = 10;

interface Told {
  /** Times from the start of a delivery to its arrival. */
  arrivalMs: number[];
  workflowIds: string[];
}

type MeasuredRun = Told & Cost;

/** Figures of one subject's deliveries; times in ms, costs of one delivery. */
interface Figures {
  per_second: number;
  start_to_webhook: Percentiles;
  temporal: HistoryFigures;
  mongodb_commands: number;
  cpu_ms: Record<string, number>;
}

export interface DeliveryFigures extends Record<SubjectName, Figures> {
  /** Product over floor, as the median of the rounds' own ratios. */
  ratio: number;
}

/** Measures webhooks alone, as many as the payments of a round have. */
export async function measureDeliveries(context: RowContext): Promise<DeliveryFigures> {
  const { subjects, options, say } = context;
  const runs: Record<SubjectName, MeasuredRun[]> = { floor: [], product: [] };
  for (let round = 1; round <= options.rounds; round += 1) {
    for (const subject of [subjects.floor, subjects.product]) {
      const run = await oneRun(context, subject);
      runs[subject.name].push(run);
      say(`round ${round}  ${subject.name}: ${run.perSecond.toFixed(1)} webhooks a second`);
    }
  }
  const ratios = runs.product.map(
    ({ perSecond }, n) => perSecond / (runs.floor[n]?.perSecond ?? 1),
  );
  return {
    floor: await figuresOf(context, runs.floor),
    product: await figuresOf(context, runs.product),
    ratio: median(ratios),
  };
}

async function oneRun(context: RowContext, subject: Subject): Promise<MeasuredRun> {
  const { instruments, options } = context;
  const { receiver, signal } = instruments;
  const { concurrency, payments: count } = options;
  const deliveries = await subject.deliveries(count);
  const told: Told = { arrivalMs: [], workflowIds: [] };
  const tell = async (n: number): Promise<void> => {
    const delivery = deliveries[n];
    if (delivery === undefined) return;
    const began = performance.now();
    const arrival = receiver.arrival(delivery.paymentId, TOLD_ALONE);
    const [at] = await Promise.all([arrival, delivery.start()]);
    told.arrivalMs.push(at - began);
    told.workflowIds.push(delivery.workflowId);
    receiver.take(delivery.paymentId);
  };
  const run = async () => {
    await inLoops({ count, concurrency, signal }, tell);
    return told;
  };
  return await measure(instruments, { count, taskQueues: subject.taskQueues, run });
}

async function figuresOf(
  { instruments: { temporal } }: RowContext,
  runs: readonly MeasuredRun[],
): Promise<Figures> {
  const sample = runs.at(-1)?.workflowIds.slice(-SAMPLE) ?? [];
  return {
    per_second: median(runs.map(({ perSecond }) => perSecond)),
    start_to_webhook: percentiles(runs.flatMap(({ arrivalMs }) => arrivalMs)),
    temporal: await countHistories(
      temporal,
      sample.map((id) => [id]),
    ),
    mongodb_commands: total(meanCounts(runs.map(({ mongoCommands }) => mongoCommands))),
    cpu_ms: meanCounts(runs.map(({ cpuMs }) => cpuMs)),
  };
}
