import { cpus, totalmem } from 'node:os';
import type { Percentiles } from './measure/statistics';

type Value = number | Percentiles | null;

/** Line of the table: a base value, the value compared with it, and their ratio. */
export interface Row {
  name: string;
  values: readonly [base: Value, compared: Value];
  ratio: number | null;
}

export interface Report {
  columns: readonly [base: string, compared: string];
  rows: Row[];
  notes: string[];
}

/**
 * Builds a row.
 * @param ratio compared over base; by default of the values, or of their medians
 */
export function buildRow(name: string, base: Value, compared: Value, ratio?: number): Row {
  const quotient = ratio ?? toNumber(compared) / toNumber(base);
  return { name, values: [base, compared], ratio: Number.isFinite(quotient) ? quotient : null };
}

/** Builds an indented row without a ratio for each name; names near zero are left out. */
export function buildDetails(
  base: Readonly<Record<string, number>>,
  compared: Readonly<Record<string, number>>,
): Row[] {
  const names = [...new Set([...Object.keys(compared), ...Object.keys(base)])];
  return names
    .map((name) => buildRow(`  ${name}`, base[name] ?? 0, compared[name] ?? 0, Number.NaN))
    .filter(({ values: [left, right] }) => toNumber(left) + toNumber(right) >= 0.05);
}

function toNumber(value: Value): number {
  if (value === null) return Number.NaN;
  return typeof value === 'number' ? value : value.p50;
}

const NAME_WIDTH = 40;
const COLUMN_WIDTH = 22;

/** Formats the report as text: the machine, one table and the notes. */
export function formatTable({ columns, rows, notes }: Report): string {
  const toLine = (name: string, cells: readonly string[]) =>
    (name.padEnd(NAME_WIDTH) + cells.map((cell) => cell.padStart(COLUMN_WIDTH)).join('')).trimEnd();
  const [base, compared] = columns;
  const lines = rows.map(({ name, values, ratio }) =>
    toLine(name, [...values.map(formatValue), ratio?.toFixed(2) ?? '']),
  );
  const { cpus: count, cpu, memory_gb, node } = readMachine();
  return [
    `${count} x ${cpu}, ${memory_gb} GB, Node ${node}`,
    '',
    toLine('', [base, compared, 'ratio']),
    ...lines,
    '',
    ...notes,
    '',
  ].join('\n');
}

function formatValue(value: Value): string {
  if (value === null) return '';
  if (typeof value === 'number') return Number.isInteger(value) ? `${value}` : value.toFixed(1);
  return [value.p50, value.p95, value.p99].map((ms) => ms.toFixed(0)).join(' / ');
}

export function formatJson({ columns, rows, notes }: Report): string {
  const named = rows.map(({ name, values: [base, compared], ratio }) => ({
    name: name.trim(),
    [columns[0]]: base,
    [columns[1]]: compared,
    ratio,
  }));
  const round = (_name: string, value: unknown) =>
    typeof value === 'number' ? Math.round(value * 1_000) / 1_000 : value;
  return `${JSON.stringify({ machine: readMachine(), rows: named, notes }, round, 2)}\n`;
}

function readMachine() {
  return {
    cpus: cpus().length,
    cpu: cpus()[0]?.model ?? 'unknown',
    memory_gb: Math.round(totalmem() / 1e9),
    platform: `${process.platform} ${process.arch}`,
    node: process.version,
  };
}
