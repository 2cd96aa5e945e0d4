import { sanitize } from '../domain/printable';
import type { CliContext } from './context';

/** Characters two columns wide. */
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60]|\p{Emoji_Presentation}/u;

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' });

export function formatTime(iso: string | null): string {
  return iso === null ? '-' : `${iso.slice(0, 19).replace('T', ' ')} UTC`;
}

/** Formats the two greatest units: `3 d 4 h`, `5 min`, `20 s`. */
export function formatAge(seconds: number): string {
  if (seconds < 60) return `${Math.max(0, seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

type FieldRow = readonly [name: string, value: string | undefined];

export function fields(rows: readonly FieldRow[]): string {
  return align(rows.flatMap(([name, value]) => (value === undefined ? [] : [[`${name}:`, value]])));
}

export function printFields(
  { print }: Pick<CliContext, 'print'>,
  { json, note }: { json: unknown; note?: string },
  rows: readonly FieldRow[],
): void {
  print({ json, text: [fields(rows), ...(note === undefined ? [] : [note])].join('\n\n') });
}

export function table(heading: readonly string[], rows: readonly string[][], none: string): string {
  return rows.length === 0 ? none : align([heading, ...rows]);
}

/** By heading: a field that a column shows, or what it prints. A field that ends in `_at` is a time. */
export type Columns<Shown, Row = Shown> = Readonly<
  Record<string, (keyof Shown & string) | ((shown: Shown, row: Row) => string | null)>
>;

export function formatCells<Shown, Row = Shown>(
  columns: Columns<Shown, Row>,
  shown: Shown,
  row: Row,
): string[] {
  return Object.values(columns).map((column) => {
    const value = typeof column === 'string' ? shown[column] : column(shown, row);
    if (value === null || value === undefined) return '-';
    const isTime = typeof column === 'string' && column.endsWith('_at');
    return isTime ? formatTime(String(value)) : String(value);
  });
}

interface List<Row, Shown> {
  rows: readonly Row[];
  has_more?: boolean;
  next_cursor?: string | null;
  cursorOption?: '--before' | '--after';
  present: (row: Row) => Shown;
  columns: Columns<Shown, Row>;
  none: string;
}

export function printList<Row, Shown>(
  { print }: Pick<CliContext, 'print'>,
  { rows, present, columns, none, cursorOption = '--before', ...page }: List<Row, Shown>,
): void {
  const data = rows.map(present);
  const cells = rows.map((row) => formatCells(columns, present(row), row));
  const cursor = page.next_cursor ? `: ${cursorOption} ${page.next_cursor}` : '.';
  const more = page.has_more ? `\n\nThere are more${cursor}` : '';
  print({ json: { data, ...page }, text: table(Object.keys(columns), cells, none) + more });
}

function align(rows: readonly (readonly string[])[]): string {
  const cells = rows.map((row) => row.map(sanitize));
  const widths = (cells[0] ?? []).map((_, at) =>
    Math.max(...cells.map((row) => getWidth(row[at] ?? ''))),
  );
  const line = (row: readonly string[]) =>
    row.map((cell, at) => cell + ' '.repeat((widths[at] ?? 0) - getWidth(cell))).join('  ');
  return cells.map((row) => line(row).trimEnd()).join('\n');
}

function getWidth(text: string): number {
  let width = 0;
  for (const { segment } of graphemes.segment(text)) width += WIDE.test(segment) ? 2 : 1;
  return width;
}
