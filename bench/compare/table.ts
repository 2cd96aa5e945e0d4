import type { Sample } from '../measure/cost';
import { mean, meanCounts, median, percentiles, total } from '../measure/statistics';
import { buildDetails, buildRow, type Row } from '../report';
import type { Subject } from '../subject';

export type Samples = Record<Subject['name'], Sample[]>;

/** Builds the median rate and each round's. The ratio is taken within each round, then the median. */
export function rateRows(name: string, samples: Samples): Row[] {
  const rate = ({ perSecond }: Sample) => perSecond;
  const { floor, product } = samples;
  const rounds = product.map((sample, n) =>
    buildRow(`  round ${n + 1}`, floor[n]?.perSecond ?? null, sample.perSecond),
  );
  return [
    buildRow(name, ...medians(samples, rate), roundsRatio(samples, rate)),
    ...(rounds.length > 1 ? rounds : []),
  ];
}

export function timeRows(what: string, samples: Samples): Row[] {
  const row = (name: string, pick: (sample: Sample) => number[]) => {
    const of = (all: readonly Sample[]) =>
      all.length === 0 ? null : percentiles(all.flatMap(pick));
    const p50 = (sample: Sample) => percentiles(pick(sample)).p50;
    const ratio = roundsRatio(samples, p50);
    return buildRow(`${name}, ${what}, ms`, of(samples.floor), of(samples.product), ratio);
  };
  return [
    row('create', ({ createMs }) => createMs),
    row('callback to webhook', ({ webhookMs }) => webhookMs),
  ];
}

/** Builds the mean cost of a resource, with its parts. */
export function costRows(resource: string, samples: Samples): Row[] {
  const row = (name: string, pick: (sample: Sample) => number) => {
    const of = (all: readonly Sample[]) => (all.length === 0 ? null : mean(all.map(pick)));
    return buildRow(`${name} a ${resource}`, of(samples.floor), of(samples.product));
  };
  const details = (pick: (sample: Sample) => Record<string, number>) =>
    buildDetails(meanCounts(samples.floor.map(pick)), meanCounts(samples.product.map(pick)));
  return [
    row('history events', ({ histories }) => histories.history_events),
    row('workflow tasks', ({ histories }) => histories.workflow_tasks),
    row('Temporal actions', ({ histories }) => histories.actions),
    ...details(({ histories }) => histories.actions_by_kind),
    row('MongoDB commands', ({ mongoCommands }) => total(mongoCommands)),
    ...details(({ mongoCommands }) => mongoCommands),
    row('processor ms', ({ cpuMs }) => total(cpuMs)),
    ...details(({ cpuMs }) => cpuMs),
  ];
}

/** Compares events for a number of endpoints, in the product's column, with those for one. */
export function fanRows(endpoints: number, samples: Samples): Row[] {
  const about = `an event at ${endpoints}`;
  const row = (name: string, pick: (sample: Sample) => number) =>
    buildRow(`${name}, ${about}`, ...medians(samples, pick), roundsRatio(samples, pick));
  return [
    row('start to last webhook, ms', ({ webhookMs }) => percentiles(webhookMs).p50),
    row('processor ms', ({ cpuMs }) => total(cpuMs)),
    row('Temporal actions', ({ histories }) => histories.actions),
    row('MongoDB commands', ({ mongoCommands }) => total(mongoCommands)),
  ];
}

export function medians(
  { floor, product }: Samples,
  pick: (sample: Sample) => number,
): [number | null, number | null] {
  const of = (samples: readonly Sample[]) =>
    samples.length === 0 ? null : median(samples.map(pick));
  return [of(floor), of(product)];
}

/** Computes the median of the rounds' own ratios; undefined without the floor. */
export function roundsRatio(
  { floor, product }: Samples,
  pick: (sample: Sample) => number,
): number | undefined {
  const ratios = product.flatMap((sample, n) => {
    const base = floor[n];
    return base === undefined ? [] : [pick(sample) / pick(base)];
  });
  return ratios.length === 0 ? undefined : median(ratios);
}
