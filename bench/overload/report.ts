import type { Percentiles } from '../statistics';
import { type OverloadFigures, TIMES } from './run';

const NAME_WIDTH = 44;

export function reportOverload({
  at_once,
  capacity,
  overload,
  ratio,
  memory,
}: OverloadFigures): string {
  const { offered, accepted, refused, refusals } = overload;
  const asked = accepted.count + Object.values(refused).reduce((sum, count) => sum + count, 0);
  const shares = Object.entries(refused).map(
    ([status, count]) => `${status}: ${share(count, asked)}`,
  );
  return [
    row('creates under way at once, and the limit', String(at_once)),
    row('creates a second at capacity', capacity.per_second.toFixed(1)),
    row(`asked for in a second, ${TIMES} times as many`, offered.toFixed(1)),
    row('accepted a second then', accepted.per_second.toFixed(1)),
    row('refused', shares.join(', ') || 'none'),
    row('create at capacity, p50 / p95 / p99 ms', times(capacity.ms)),
    row('accepted create, p50 / p95 / p99 ms', times(accepted.ms)),
    row('refusal, p50 / p95 / p99 ms', refusals === undefined ? '-' : times(refusals)),
    row('p99, accepted / at capacity', ratio.toFixed(2)),
    ...Object.entries(memory).map(([name, { before, most }]) =>
      row(`memory of the ${name}, before / most MiB`, `${before ?? '-'} / ${most ?? '-'}`),
    ),
    '',
  ].join('\n');
}

function row(name: string, text: string): string {
  return `${name.padEnd(NAME_WIDTH)}${text}`;
}

function times({ p50, p95, p99 }: Percentiles): string {
  return [p50, p95, p99].map((ms) => ms.toFixed(0)).join(' / ');
}

function share(count: number, of: number): string {
  return `${((count / of) * 100).toFixed(0)} %`;
}
