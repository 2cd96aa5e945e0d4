import { machineLine } from '../report';
import type { Plan } from './plan';
import type { ListsResult } from './run';

const NAME_WIDTH = 52;
const COLUMN_WIDTH = 16;
/** Rows of the large store over those of the small one, up to which their times compare. */
const ROWS_ALIKE = 1.1;

/** Writes the figures for people. */
export function reportLists({ machine, reads, small, large, lists }: ListsResult): string {
  const rows = lists.map((list) => {
    const times = [list.small, list.large].map(({ p50, p99 }) => `${ms(p50)} / ${ms(p99)}`);
    const { plan, ratio } = list;
    const alike = list.large.rows <= list.small.rows * ROWS_ALIKE;
    const p99 = alike ? ratio.p99.toFixed(2) : `(${ratio.p99.toFixed(2)})`;
    const cells = [...times, p99, `${plan.keys_examined} / ${plan.returned}`];
    const numbers = cells.map((cell) => cell.padStart(COLUMN_WIDTH)).join('');
    return `${list.name.padEnd(NAME_WIDTH)}${numbers}  ${planIn(plan)}`;
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
    `p50 / p99 in ms of ${reads} reads of each list, at any place; a ratio in parentheses: more rows`,
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

function ms(value: number): string {
  return value.toFixed(1);
}
