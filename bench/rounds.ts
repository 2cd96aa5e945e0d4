import type { Progress } from '../stack/terminal';
import { countHistories, type HistoryFigures } from './histories';
import { LIFECYCLES, type LifecycleName, type LifecycleRun, runLifecycle } from './lifecycles';
import { type Instruments, type MeasuredRun, measure } from './measure';
import { measureIdle } from './mongo-commands';
import type { BenchOptions } from './options';
import type { Product } from './product-subject';
import type { Subject, SubjectName } from './subject';

/** Share of the payments under load that are made one at a time for the latencies. */
const CALM_SHARE = 1 / 3;
const CALM_MIN = 10;
const WARM_UP_SHARE = 0.4;
const WARM_UP_MIN = 20;
/** Number of payments whose histories are read. */
const SAMPLE = 10;

/** Runs of one subject in one round, under load and calm. */
export interface Round {
  load: MeasuredRun;
  /** Run of one payment at a time. */
  calm: MeasuredRun;
}

export type RoundPair = Record<SubjectName, Round>;

export interface Results {
  rounds: RoundPair[];
  histories: Record<SubjectName, HistoryFigures>;
  /** The product's other lifecycles under load, one run for each round. */
  beside: Record<LifecycleName, LifecycleRun[]>;
}

/**
 * Warms both up, then alternates under load: floor, product, floor, product…, and likewise one at a
 * time, so that other work of the machine falls on both.
 */
export async function runRounds(
  subjects: { floor: Subject; product: Product },
  gauges: Omit<Instruments, 'idleCommands'>,
  { payments, concurrency, rounds }: BenchOptions,
  progress: Progress,
): Promise<Results> {
  const { floor, product } = subjects;
  const warmUp = Math.max(WARM_UP_MIN, Math.ceil(payments * WARM_UP_SHARE));
  const calm = { payments: Math.max(CALM_MIN, Math.ceil(payments * CALM_SHARE)), concurrency: 1 };
  const load = { payments, concurrency };
  const cold = { ...gauges, idleCommands: {} };
  for (const subject of [floor, product]) {
    await measure(cold, subject, { payments: warmUp, concurrency });
    progress.line(`warm-up  ${subject.name}: ${warmUp} payments`);
  }
  const instruments = { ...gauges, idleCommands: await measureIdle(gauges.mongo) };
  const pairs: RoundPair[] = [];
  for (let round = 1; round <= rounds; round += 1) {
    const told = (name: SubjectName, run: MeasuredRun): MeasuredRun => {
      progress.line(`round ${round}  ${name}: ${describe(run)}`);
      return run;
    };
    const loads = {
      floor: told('floor', await measure(instruments, floor, load)),
      product: told('product', await measure(instruments, product, load)),
    };
    const calms = {
      floor: await measure(instruments, floor, calm),
      product: await measure(instruments, product, calm),
    };
    pairs.push({
      floor: { load: loads.floor, calm: calms.floor },
      product: { load: loads.product, calm: calms.product },
    });
  }
  const sample = (name: SubjectName) => sampleOf(subjects[name], pairs.at(-1)?.[name]);
  const beside = await runBeside(
    product,
    pairs,
    gauges,
    { payments, concurrency, rounds },
    progress,
  );
  return {
    rounds: pairs,
    beside,
    histories: {
      floor: await countHistories(gauges.temporal, sample('floor')),
      product: await countHistories(gauges.temporal, sample('product')),
    },
  };
}

/** Runs refunds of the payments that were made, and payouts, turn by turn. */
async function runBeside(
  product: Product,
  pairs: readonly RoundPair[],
  { receiver, signal }: Pick<Instruments, 'receiver' | 'signal'>,
  { payments, concurrency, rounds }: Pick<BenchOptions, 'payments' | 'concurrency' | 'rounds'>,
  progress: Progress,
): Promise<Results['beside']> {
  const settled = pairs.flatMap((pair) => pair.product.load.made.map(({ paymentId }) => paymentId));
  const lifecycles = await product.lifecycles(settled);
  const beside: Results['beside'] = { refunds: [], payouts: [] };
  for (let round = 1; round <= rounds; round += 1) {
    for (const name of LIFECYCLES) {
      const load = { count: payments, concurrency, signal };
      const run = await runLifecycle(lifecycles[name], receiver, load);
      beside[name].push(run);
      progress.line(`round ${round}  product: ${run.perSecond.toFixed(1)} ${name} a second`);
    }
  }
  return beside;
}

function describe({ payments, elapsedMs, paymentsPerSecond }: MeasuredRun): string {
  const seconds = (elapsedMs / 1_000).toFixed(1);
  return `${payments} payments in ${seconds} s, ${paymentsPerSecond.toFixed(1)} a second`;
}

/** Samples payments, half of them made under load, half one at a time. */
function sampleOf(subject: Subject, round: Round | undefined): string[][] {
  const half = SAMPLE / 2;
  const made = [...(round?.load.made.slice(-half) ?? []), ...(round?.calm.made.slice(-half) ?? [])];
  return made.map(({ paymentId, eventIds }) => subject.workflowIds(paymentId, eventIds));
}
