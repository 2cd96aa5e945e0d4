import { machineLine } from '../report';
import type { DashboardResult } from './run';

const NAME_WIDTH = 36;
const COLUMN_WIDTH = 18;

/** Writes the figures for people. */
export function reportDashboard(result: DashboardResult): string {
  const { pages, payments, reads } = result;
  const rows = pages.map(({ name, page, query, bytes }) => {
    const cells = [
      `${page.p50.toFixed(1)} / ${page.p99.toFixed(1)}`,
      `${query.p50.toFixed(1)} / ${query.p99.toFixed(1)}`,
      `${(bytes / 1_024).toFixed(0)} KiB`,
    ];
    return `${name.padEnd(NAME_WIDTH)}${cells.map((cell) => cell.padStart(COLUMN_WIDTH)).join('')}`;
  });
  const heading = ['page', 'bare query', 'size'].map((cell) => cell.padStart(COLUMN_WIDTH));
  const { rows: exported, bytes, seconds, grew_mib } = result.export;
  return [
    '',
    machineLine(result.machine),
    `${payments} payments of one merchant; p50 / p99 in ms of ${reads} reads of each page over HTTP`,
    '',
    `${''.padEnd(NAME_WIDTH)}${heading.join('')}`,
    ...rows,
    '',
    `export: ${exported} rows, ${(bytes / 1_048_576).toFixed(1)} MiB in ${seconds.toFixed(1)} s; ` +
      `the process grew by ${grew_mib} MiB at most`,
    '',
  ].join('\n');
}
