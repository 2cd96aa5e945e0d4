import { machineLine } from '../report';
import type { Plan } from './plan';
import type { ListsResult } from './run';

const NAME_WIDTH = 52;
const COLUMN_WIDTH = 16;
const INDEX_WIDTH = 26;

/** Writes the figures for people. */
export function reportLists({ machine, reads, small, large, ratios }: ListsResult): string {
  const rows = large.lists.map(({ name, read, plan }, n) => {
    const before = small.lists[n]?.read;
    const times = [before, read].map((of) => `${ms(of?.p50)} / ${ms(of?.p99)}`);
    const ratio = (ratios[n]?.p99 ?? Number.NaN).toFixed(2);
    const cells = [...times, ratio, `${plan.keys_examined} / ${plan.returned}`];
    return (
      name.padEnd(NAME_WIDTH) +
      cells.map((cell) => cell.padStart(COLUMN_WIDTH)).join('') +
      `  ${planIn(plan)}`.padEnd(INDEX_WIDTH)
    ).trimEnd();
  });
  const heading = [`${small.payments}`, `${large.payments}`, 'ratio of p99', 'keys / rows'];
  const filled = [small, large].map(
    ({ payments, fill_seconds, indexes_seconds }) =>
      `${payments} payments in ${fill_seconds.toFixed(1)} s, indexes in ${indexes_seconds.toFixed(1)} s`,
  );
  return [
    '',
    machineLine(machine),
    ...filled,
    `p50 / p99 in ms of ${reads} reads of each list, at any place`,
    '',
    `${''.padEnd(NAME_WIDTH)}${heading.map((cell) => cell.padStart(COLUMN_WIDTH)).join('')}  index`,
    ...rows,
    '',
  ].join('\n');
}

/** Names the index, and what should not be needed beside it. */
function planIn({ indexes, stages }: Plan): string {
  const bad = ['COLLSCAN', 'SORT'].filter((stage) => stages.includes(stage));
  return [...indexes, ...bad].join(', ');
}

function ms(value: number | undefined): string {
  return value === undefined ? '-' : value.toFixed(1);
}
