import type { Percentiles } from './statistics';

const NAME_WIDTH = 36;
const COLUMN_WIDTH = 20;

/** Writes a line of a table: a name, and cells. */
export function line(name: string, ...cells: string[]): string {
  const columns = cells.map((text) => text.padStart(COLUMN_WIDTH)).join('');
  return (name.padEnd(NAME_WIDTH) + columns).trimEnd();
}

/** Writes a line of floor, product, and product over floor. */
export function row(name: string, floor: string, product: string, ratio = Number.NaN): string {
  return line(name, floor, product, Number.isFinite(ratio) ? ratio.toFixed(2) : '');
}

export function three({ p50, p95, p99 }: Percentiles): string {
  return [p50, p95, p99].map((ms) => ms.toFixed(0)).join(' / ');
}

/** Writes a line for each name that either has, but for those of hardly any. */
export function details(
  title: string,
  floor: Record<string, number>,
  product: Record<string, number>,
): string[] {
  const names = [...new Set([...Object.keys(product), ...Object.keys(floor)])];
  const rows = names
    .map((name) => ({ name, theirs: floor[name] ?? 0, ours: product[name] ?? 0 }))
    .filter(({ ours, theirs }) => ours + theirs >= 0.05);
  return [
    line(title),
    ...rows.map(({ name, ours, theirs }) => row(`  ${name}`, theirs.toFixed(1), ours.toFixed(1))),
    '',
  ];
}
