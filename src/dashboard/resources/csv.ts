import { Readable } from 'node:stream';

/** Plain decimals are no formula, also below 0. */
interface Decimal {
  decimal: string;
}

type CsvValue = string | number | Decimal | null | undefined;

export type CsvColumn<D> = readonly [heading: string, value: (row: D) => CsvValue];

export function fieldColumns<Name extends string>(...names: readonly Name[]) {
  return names.map(
    (name): CsvColumn<Partial<Record<Name, CsvValue>>> => [name, (row) => row[name]],
  );
}

/**
 * Start of a text that a spreadsheet would run, signs of other widths included, also after spaces
 * and invisible characters. A semicolon separates cells in many locales, so a text may start after
 * one, where quotes before the sign are the cell's own.
 */
const FORMULA_START = /^(?=[\r\n])|(?:^|[;\t\r\n])(?=["\s\p{Cf}]*[=+\-@\t＝＋－＠﹦﹢﹣﹫])/gu;
/** Excel reads UTF-8 only after it. */
const BYTE_ORDER_MARK = '\uFEFF';
const CHUNK_CHARS = 16 * 1_024;

/** Streams CSV (RFC 4180, UTF-8) in constant memory; a reader that leaves ends the query. */
export function csvStream<D>(rows: AsyncIterable<D>, columns: readonly CsvColumn<D>[]): Readable {
  async function* readChunks() {
    let text = BYTE_ORDER_MARK + line(columns.map(([heading]) => heading));
    for await (const row of rows) {
      text += line(columns.map(([, value]) => value(row)));
      if (text.length < CHUNK_CHARS) continue;
      yield text;
      text = '';
    }
    yield text;
  }
  return Readable.from(readChunks(), { objectMode: false });
}

function line(values: readonly CsvValue[]): string {
  return `${values.map(cell).join(',')}\r\n`;
}

export function cell(value: CsvValue): string {
  if (typeof value === 'number') return String(value);
  if (typeof value === 'object' && value !== null) return value.decimal;
  const safe = (value ?? '').replace(FORMULA_START, "$&'");
  return /[",;\t\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function createExports(max: number) {
  const countByAccount = new Map<string, number>();
  return {
    /**
     * Counts an export until its stream closes.
     * @returns null when the account is at its limit
     */
    begin: (account_id: string, open: () => Readable): Readable | null => {
      const others = countByAccount.get(account_id) ?? 0;
      if (others >= max) return null;
      const download = open();
      countByAccount.set(account_id, others + 1);
      download.once('close', () => {
        const remaining = (countByAccount.get(account_id) ?? 1) - 1;
        if (remaining === 0) countByAccount.delete(account_id);
        else countByAccount.set(account_id, remaining);
      });
      return download;
    },
  };
}
