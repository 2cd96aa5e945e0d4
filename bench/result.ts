import { cpus, totalmem } from 'node:os';
import type { HistoryFigures } from './histories';
import type { LifecycleName } from './lifecycles';
import type { MeasuredRun } from './measure';
import { total } from './mongo-commands';
import type { BenchOptions } from './options';
import type { Receiver } from './receiver';
import type { Results, Round, RoundPair } from './rounds';
import { mean, median, type Percentiles, percentiles } from './statistics';
import type { SlowCreates, SubjectName } from './subject';

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

/** Result as it is printed, and as `--json` gives it. */
export interface Result {
  machine: { cpus: number; cpu: string; memory_gb: number; platform: string; node: string };
  servers: { temporal: string; mongodb: string };
  options: Omit<BenchOptions, 'json' | 'help' | 'ledger'>;
  took_seconds: number;
  floor: Figures;
  product: Figures;
  /** Product over floor, as the median of the rounds' own ratios. */
  ratio: Record<'payments_per_second' | 'create_p50' | 'callback_to_webhook_p50', number>;
  rounds: { floor: RoundFigures; product: RoundFigures; ratio: number }[];
  /** The product's other lifecycles under load. */
  beside: Record<LifecycleName, BesideFigures>;
  webhooks: ReturnType<Receiver['counts']>;
  /** Slow creates of the product; none unless the machine is overloaded. */
  slow_creates: SlowCreates;
}

/** Figures of one of the product's other lifecycles; times in ms. */
export interface BesideFigures {
  /** Median of the rounds. */
  per_second: number;
  /**
   * Ratio to the floor's payments a second; each has its state written and told as often, or less.
   */
  over_floor: number;
  create: Percentiles;
  callback_to_webhook: Percentiles;
}

interface RoundFigures {
  payments_per_second: number;
  create_p50: number;
  callback_to_webhook_p50: number;
}

export interface Measured {
  results: Results;
  options: BenchOptions;
  servers: Result['servers'];
  webhooks: Result['webhooks'];
  slowCreates: SlowCreates;
  tookMs: number;
}

export function resultOf(measured: Measured): Result {
  const { results, options, servers, webhooks, slowCreates, tookMs } = measured;
  const { rounds } = results;
  const { payments, concurrency } = options;
  const pairRatio = (of: (round: Round) => number): number =>
    median(rounds.map(({ floor, product }) => of(product) / of(floor)));
  return rounded({
    machine: machine(),
    servers,
    options: { payments, concurrency, rounds: options.rounds },
    took_seconds: tookMs / 1_000,
    floor: figuresOf('floor', results),
    product: figuresOf('product', results),
    ratio: {
      payments_per_second: pairRatio(({ load }) => load.paymentsPerSecond),
      create_p50: pairRatio(({ calm }) => percentiles(calm.createMs).p50),
      callback_to_webhook_p50: pairRatio(({ calm }) => percentiles(calm.callbackMs).p50),
    },
    rounds: rounds.map(roundFigures),
    beside: {
      refunds: besideFigures(results, 'refunds'),
      payouts: besideFigures(results, 'payouts'),
    },
    webhooks,
    slow_creates: slowCreates,
  });
}

function figuresOf(name: SubjectName, { rounds, histories }: Results): Figures {
  const loads = rounds.map((round) => round[name].load);
  const calms = rounds.map((round) => round[name].calm);
  const commands = meanCounts(loads.map(({ mongoCommands }) => mongoCommands));
  return {
    payments_per_second: median(loads.map(({ paymentsPerSecond }) => paymentsPerSecond)),
    calm: latenciesOf(calms),
    under_load: latenciesOf(loads),
    temporal: histories[name],
    mongodb_commands: total(commands),
    mongodb_commands_by_name: commands,
    cpu_ms: meanCounts(loads.map(({ cpuMs }) => cpuMs)),
  };
}

function besideFigures({ rounds, beside }: Results, name: LifecycleName): BesideFigures {
  const runs = beside[name];
  const floor = median(rounds.map((round) => round.floor.load.paymentsPerSecond));
  const per_second = median(runs.map(({ perSecond }) => perSecond));
  return {
    per_second,
    over_floor: per_second / floor,
    create: percentiles(runs.flatMap(({ createMs }) => createMs)),
    callback_to_webhook: percentiles(runs.flatMap(({ callbackMs }) => callbackMs)),
  };
}

/** Computes percentiles of all rounds' payments together. */
function latenciesOf(runs: readonly MeasuredRun[]): Latencies {
  return {
    create: percentiles(runs.flatMap(({ createMs }) => createMs)),
    callback_to_webhook: percentiles(runs.flatMap(({ callbackMs }) => callbackMs)),
  };
}

function roundFigures({ floor, product }: RoundPair): Result['rounds'][number] {
  const figures = ({ load, calm }: Round): RoundFigures => ({
    payments_per_second: load.paymentsPerSecond,
    create_p50: percentiles(calm.createMs).p50,
    callback_to_webhook_p50: percentiles(calm.callbackMs).p50,
  });
  const ratio = product.load.paymentsPerSecond / floor.load.paymentsPerSecond;
  return { floor: figures(floor), product: figures(product), ratio };
}

function meanCounts(rows: readonly Record<string, number>[]): Record<string, number> {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const means = names.map((name) => [name, mean(rows.map((row) => row[name] ?? 0))] as const);
  return Object.fromEntries(means.sort(([, a], [, b]) => b - a));
}

function machine(): Result['machine'] {
  return {
    cpus: cpus().length,
    cpu: cpus()[0]?.model ?? 'unknown',
    memory_gb: Math.round(totalmem() / 1e9),
    platform: `${process.platform} ${process.arch}`,
    node: process.version,
  };
}

/** Rounds to three decimals, which are more than is known. */
function rounded(result: Result): Result {
  return JSON.parse(
    JSON.stringify(result, (_name, value: unknown) =>
      typeof value === 'number' ? Math.round(value * 1_000) / 1_000 : value,
    ),
  );
}
