import { Readable } from 'node:stream';

export type CsvValue = string | number | null | undefined;

/** Column of an export: its heading and its value in a row. */
export type CsvColumn<D> = readonly [heading: string, value: (row: D) => CsvValue];

/** Starts of a cell that a spreadsheet would run as a formula. */
const FORMULA = /^[=+\-@\t\r]/;
/** Size from which lines are handed on. */
const CHUNK_CHARS = 16 * 1_024;

/**
 * Writes rows as CSV (RFC 4180, UTF-8) while they are read: memory stays the same however many there
 * are, and a reader that leaves ends the reading. A reader that gets an error gets no end of file.
 */
export function csvStream<D>(rows: AsyncIterable<D>, columns: readonly CsvColumn<D>[]): Readable {
  return Readable.from(chunks(rows, columns), { objectMode: false });
}

async function* chunks<D>(
  rows: AsyncIterable<D>,
  columns: readonly CsvColumn<D>[],
): AsyncGenerator<string> {
  let text = line(columns.map(([heading]) => heading));
  for await (const row of rows) {
    text += line(columns.map(([, value]) => value(row)));
    if (text.length < CHUNK_CHARS) continue;
    yield text;
    text = '';
  }
  yield text;
}

function line(values: readonly CsvValue[]): string {
  return `${values.map(cell).join(',')}\r\n`;
}

/** Cell that no spreadsheet takes for a formula: such text begins with an apostrophe. */
export function cell(value: CsvValue): string {
  const text = value === null || value === undefined ? '' : String(value);
  const safe = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
