import { countHistories, type HistoryFigures } from '../histories';
import { type Run, runLoad } from '../load';
import { type Cost, measure } from '../measure';
import { total } from '../mongo-commands';
import { meanCounts, median, type Percentiles, percentiles } from '../statistics';
import type { Subject, SubjectName } from '../subject';
import type { RowContext } from './context';

/** Share of the payments under load that are made one at a time for the latencies. */
const CALM_SHARE = 1 / 3;
const CALM_MIN = 10;
/** Number of payments whose histories are read. */
const SAMPLE = 10;

type MeasuredRun = Run & Cost;

/** Runs of one subject in one round, under load and calm. */
interface Round {
  load: MeasuredRun;
  /** Run of one payment at a time. */
  calm: MeasuredRun;
}

type RoundPair = Record<SubjectName, Round>;

/** Times in ms. */
export interface Latencies {
  create: Percentiles;
  callback_to_webhook: Percentiles;
}

/** Figures of one subject, over all rounds. */
export interface Figures {
  /** Median of the rounds. */
  payments_per_second: number;
  /** Latencies of one payment at a time. */
  calm: Latencies;
  under_load: Latencies;
  temporal: HistoryFigures;
  mongodb_commands: number;
  mongodb_commands_by_name: Record<string, number>;
  /** Processor time in ms per payment under load, by process. */
  cpu_ms: Record<string, number>;
}

interface RoundFigures {
  payments_per_second: number;
  create_p50: number;
  callback_to_webhook_p50: number;
}

export interface PaymentFigures {
  floor: Figures;
  product: Figures;
  /** Product over floor, as the median of the rounds' own ratios. */
  ratio: Record<
    'payments_per_second' | 'create_p50' | 'create_p99' | 'callback_to_webhook_p50',
    number
  >;
  rounds: { floor: RoundFigures; product: RoundFigures; ratio: number }[];
}

/**
 * Alternates under load: floor, product, floor, product…, and likewise one at a time, so that other
 * work of the machine falls on both.
 * @returns its figures, and the product's payments, which refunds can be made of
 */
export async function measurePayments(
  context: RowContext,
): Promise<{ figures: PaymentFigures; settled: string[] }> {
  const { subjects, instruments, options, say } = context;
  const { payments, concurrency } = options;
  const run = async (subject: Subject, count: number, atOnce: number): Promise<MeasuredRun> => {
    const { receiver, signal } = instruments;
    const load = { payments: count, concurrency: atOnce, signal };
    const { taskQueues } = subject;
    return await measure(instruments, {
      ...{ count, taskQueues },
      run: () => runLoad(subject, receiver, load),
    });
  };
  const both = async (count: number, atOnce: number, told: string | undefined) => {
    const measured = async (subject: Subject) => {
      const result = await run(subject, count, atOnce);
      const rate = result.perSecond.toFixed(1);
      if (told !== undefined) say(`${told}  ${subject.name}: ${rate} payments a second`);
      return result;
    };
    return { floor: await measured(subjects.floor), product: await measured(subjects.product) };
  };
  const pairs: RoundPair[] = [];
  for (let round = 1; round <= options.rounds; round += 1) {
    const load = await both(payments, concurrency, `round ${round}`);
    const calm = await both(Math.max(CALM_MIN, Math.ceil(payments * CALM_SHARE)), 1, undefined);
    pairs.push({
      floor: { load: load.floor, calm: calm.floor },
      product: { load: load.product, calm: calm.product },
    });
  }
  const histories = async (name: SubjectName) =>
    await countHistories(instruments.temporal, sampleOf(subjects[name], pairs.at(-1)?.[name]));
  return {
    settled: pairs.flatMap(({ product }) => product.load.made.map(({ paymentId }) => paymentId)),
    figures: {
      floor: figuresOf('floor', pairs, await histories('floor')),
      product: figuresOf('product', pairs, await histories('product')),
      ratio: ratiosOf(pairs),
      rounds: pairs.map(roundFigures),
    },
  };
}

/** Samples payments, half of them made under load, half one at a time. */
function sampleOf(subject: Subject, round: Round | undefined): string[][] {
  const half = SAMPLE / 2;
  const made = [...(round?.load.made.slice(-half) ?? []), ...(round?.calm.made.slice(-half) ?? [])];
  return made.map(({ paymentId, eventIds }) => subject.workflowIds(paymentId, eventIds));
}

function ratiosOf(pairs: readonly RoundPair[]): PaymentFigures['ratio'] {
  const ratio = (of: (round: Round) => number): number =>
    median(pairs.map(({ floor, product }) => of(product) / of(floor)));
  return {
    payments_per_second: ratio(({ load }) => load.perSecond),
    create_p50: ratio(({ calm }) => percentiles(calm.createMs).p50),
    create_p99: ratio(({ calm }) => percentiles(calm.createMs).p99),
    callback_to_webhook_p50: ratio(({ calm }) => percentiles(calm.callbackMs).p50),
  };
}

function figuresOf(
  name: SubjectName,
  pairs: readonly RoundPair[],
  temporal: HistoryFigures,
): Figures {
  const loads = pairs.map((pair) => pair[name].load);
  const calms = pairs.map((pair) => pair[name].calm);
  const commands = meanCounts(loads.map(({ mongoCommands }) => mongoCommands));
  return {
    payments_per_second: median(loads.map(({ perSecond }) => perSecond)),
    calm: latenciesOf(calms),
    under_load: latenciesOf(loads),
    temporal,
    mongodb_commands: total(commands),
    mongodb_commands_by_name: commands,
    cpu_ms: meanCounts(loads.map(({ cpuMs }) => cpuMs)),
  };
}

/** Computes percentiles of all rounds' payments together. */
function latenciesOf(runs: readonly MeasuredRun[]): Latencies {
  return {
    create: percentiles(runs.flatMap(({ createMs }) => createMs)),
    callback_to_webhook: percentiles(runs.flatMap(({ callbackMs }) => callbackMs)),
  };
}

function roundFigures({ floor, product }: RoundPair): PaymentFigures['rounds'][number] {
  const figures = ({ load, calm }: Round): RoundFigures => ({
    payments_per_second: load.perSecond,
    create_p50: percentiles(calm.createMs).p50,
    callback_to_webhook_p50: percentiles(calm.callbackMs).p50,
  });
  const ratio = product.load.perSecond / floor.load.perSecond;
  return { floor: figures(floor), product: figures(product), ratio };
}
