import { mean, meanCounts, median, total } from '../measure/statistics';
import { buildDetails, buildRow, type Row } from '../report';
import type { Burst, Kill } from './load';
import type { System } from './system';
import { joinDelays } from './tally';

/** Samples of a system, one of each round. */
export interface Samples {
  bursts: Burst[];
  /** Times in ms at half of its own rate. */
  calm: number[][];
  /** Times in ms at half of the product's rate. */
  same: number[][];
}

type AllSamples = Record<System['name'], Samples>;

/** Builds rates, times and costs of both. */
export function buildSampleRows(samples: AllSamples): Row[] {
  return [...buildRateRows(samples), ...buildCostRows(samples)];
}

function buildRateRows({ outpost, product }: AllSamples): Row[] {
  const rates = ({ bursts }: Samples) => bursts.map(({ perSecond }) => perSecond);
  const [base, compared] = [rates(outpost), rates(product)];
  const rounds = compared.map((rate, n) => buildRow(`  round ${n + 1}`, base[n] ?? null, rate));
  const times = (name: string, pick: (of: Samples) => number[][]) =>
    buildRow(name, joinDelays(pick(outpost)), joinDelays(pick(product)));
  return [
    buildRow('webhooks/s', median(base), median(compared)),
    ...rounds,
    times('ms at half of its own rate', ({ calm }) => calm),
    times("ms at half of the product's rate", ({ same }) => same),
  ];
}

function buildCostRows({ outpost, product }: AllSamples): Row[] {
  const costs = ({ bursts }: Samples) => bursts.map(({ cpuMs }) => cpuMs);
  const sum = (of: Samples) => mean(costs(of).map(total));
  return [
    buildRow('processor ms a webhook', sum(outpost), sum(product)),
    ...buildDetails(meanCounts(costs(outpost)), meanCounts(costs(product))),
  ];
}

export function buildKillRows(system: System['name'], part: string, kill: Kill): Row[] {
  const row = (name: string, value: number | null) => {
    const title = `${part} killed: ${name}`;
    return system === 'outpost' ? buildRow(title, value, null) : buildRow(title, null, value);
  };
  return [
    row('events', kill.events),
    row('lost', kill.lost),
    row('doubled', kill.doubled),
    row('s to the last event', kill.seconds),
  ];
}
