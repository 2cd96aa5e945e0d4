import { isCurrency } from '../domain/currencies';
import { normalizeAccount } from '../domain/iban';
import { parseDecimalMoney } from '../domain/money';
import { isDay } from '../domain/shape';
import {
  InvalidStatement,
  parseReference,
  type Statement,
  type StatementLine,
} from '../domain/statement';
import { readCamt } from './camt';
import { parseMessage } from './xml';

/** Larger months come as several files. */
export const FILE_BYTES_MAX = 64 * 1024 * 1024;

export interface StatementFile {
  /** Message's name, or `csv`. */
  format: string;
  statements: Statement[];
}

/** @throws InvalidStatement */
export async function readStatementFile(bytes: Uint8Array): Promise<StatementFile> {
  assertSize(bytes.length);
  const head = Buffer.from(bytes.subarray(0, 200)).toString('latin1');
  const isXml = /^(?:\xef\xbb\xbf|\xff\xfe|\xfe\xff)?[\s\0]*</.test(head);
  if (!isXml) return { format: 'csv', statements: readCsv(bytes) };
  const xml = await parseMessage(bytes);
  try {
    return { format: xml.message, statements: readCamt(xml) };
  } finally {
    xml.dispose();
  }
}

/** @throws InvalidStatement `file_too_large` */
export function assertSize(bytes: number): void {
  if (bytes <= FILE_BYTES_MAX) return;
  throw new InvalidStatement(
    'file_too_large',
    `The file has more than ${FILE_BYTES_MAX / 1024 / 1024} MiB: import it as several files.`,
  );
}

/** @see docs/statements.md#csv */
const REQUIRED = ['statement_id', 'iban', 'currency', 'opening', 'closing', 'day', 'amount'];
const OPTIONAL = ['value_date', 'reference', 'bank_reference', 'fee', 'kind', 'sequence'];

type Row = Readonly<Record<string, string>> & { readonly number: string };

/**
 * RFC 4180 with commas or semicolons, one row for each line.
 * @throws InvalidStatement
 */
function readCsv(bytes: Uint8Array): Statement[] {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new InvalidStatement('format_not_supported', 'The file is neither XML nor UTF-8 text.');
  }
  const statements = new Map<string, Statement & { lines: StatementLine[] }>();
  for (const row of readRows(text)) {
    const own = { ...readStatement(row), lines: [] };
    const key = JSON.stringify([own.statement_id, own.iban]);
    const statement = statements.get(key) ?? own;
    if (getConstants(statement) !== getConstants(own)) {
      throw fault(`the currency or a balance differs within statement ${own.statement_id}.`, row);
    }
    if (own.from_day < statement.from_day) statement.from_day = own.from_day;
    if (own.to_day > statement.to_day) statement.to_day = own.to_day;
    statements.set(key, statement);
    if (row['amount'] === '') continue;
    const line = readLine(row, own.currency, statement.lines.length + 1);
    if (line.amount !== 0) statement.lines.push(line);
  }
  if (statements.size === 0) throw fault('The file has no rows.');
  return [...statements.values()];
}

function fault(message: string, row?: Row): InvalidStatement {
  const place = row === undefined ? '' : `Row ${row.number}: `;
  return new InvalidStatement('file_invalid', `${place}${message}`);
}

function readStatement(row: Row): Omit<Statement, 'lines'> {
  const { statement_id = '', iban = '', currency = '' } = row;
  if (statement_id === '' || statement_id.length > 35) {
    throw fault('statement_id must have 1 to 35 characters.', row);
  }
  if (iban === '') throw fault('iban is empty.', row);
  if (!isCurrency(currency)) {
    throw new InvalidStatement('wrong_currency', `Row ${row.number}: currency is not in ISO 4217.`);
  }
  const opening = readSigned(row, 'opening');
  const closing = readSigned(row, 'closing');
  const day = readDay(row, 'day');
  return {
    statement_id,
    iban: normalizeAccount(iban),
    currency,
    balances: { opening, closing },
    from_day: day,
    to_day: day,
    sequence: row['sequence'] || null,
  };
}

/** Lists what all rows of a statement have in common. */
function getConstants({ currency, sequence, balances }: Statement): string {
  return JSON.stringify([currency, sequence, balances?.opening, balances?.closing]);
}

function readLine(row: Row, currency: string, entry: number): StatementLine {
  const kind = row['kind'] ?? '';
  if (kind.length > 100) throw fault('kind has more than 100 characters.', row);
  return {
    day: readDay(row, 'day'),
    value_date: row['value_date'] ? readDay(row, 'value_date') : null,
    amount: readSigned(row, 'amount'),
    currency,
    reference: readReference(row, 'reference'),
    bank_reference: readReference(row, 'bank_reference'),
    fee: row['fee'] ? readSigned(row, 'fee') : 0,
    batch: null,
    kind,
    is_fee: kind === 'fee',
    entry,
  };
}

function readReference(row: Row, name: string): string | null {
  const text = row[name];
  if ((text?.length ?? 0) > 100) throw fault(`${name} has more than 100 characters.`, row);
  return parseReference(text);
}

function readDay(row: Row, name: string): string {
  const text = row[name] ?? '';
  if (isDay(text)) return text;
  throw fault(`${name} must be a day, YYYY-MM-DD.`, row);
}

function readSigned(row: Row, name: string): number {
  const text = row[name] ?? '';
  const { currency = '' } = row;
  const amount = parseDecimalMoney(text.replace(/^-/, ''), currency);
  if (amount === undefined || text.startsWith('-+')) {
    throw fault(`${name} is no exact amount of ${currency}, such as -10.50.`, row);
  }
  return text.startsWith('-') && amount !== 0 ? -amount : amount;
}

function* readRows(text: string): Generator<Row> {
  const first = text.slice(0, text.search(/\r?\n|$/));
  const separator = first.includes(';') ? ';' : ',';
  let names: string[] | undefined;
  let number = 0;
  for (const cells of readCells(text, separator)) {
    number += 1;
    if (cells.length === 1 && cells[0] === '') continue;
    if (names === undefined) {
      names = readNames(cells);
      continue;
    }
    if (cells.length !== names.length) {
      throw fault(`Row ${number} has ${cells.length} cells, and the first row ${names.length}.`);
    }
    const row = Object.fromEntries(names.map((name, at) => [name, cells[at]?.trim() ?? '']));
    yield { ...row, number: String(number) };
  }
}

function readNames(cells: readonly string[]): string[] {
  const names = cells.map((cell) => cell.trim());
  const missing = REQUIRED.find((name) => !names.includes(name));
  if (missing !== undefined) {
    throw fault(`The file is no XML, and its first row, as of CSV, lacks the column ${missing}.`);
  }
  const unknown = names.findIndex((name) => ![...REQUIRED, ...OPTIONAL].includes(name));
  if (unknown >= 0) throw fault(`The column ${unknown + 1} of the first row is unknown.`);
  if (new Set(names).size < names.length) throw fault('The first row names a column twice.');
  return names;
}

/** @throws InvalidStatement on a quote that does not end */
function* readCells(text: string, separator: string): Generator<string[]> {
  const pattern = new RegExp(
    `(?:"((?:[^"]|"")*)"|([^"${separator}\\r\\n]*))(${separator}|\\r?\\n|$)`,
    'y',
  );
  let row: string[] = [];
  let number = 1;
  while (pattern.lastIndex < text.length) {
    const match = pattern.exec(text);
    if (match === null) throw fault(`Row ${number} has a quote that is not closed or doubled.`);
    const [, quoted, plain = '', end] = match;
    row.push(quoted?.replaceAll('""', '"') ?? plain);
    if (end === separator && pattern.lastIndex < text.length) continue;
    if (end === separator) row.push('');
    yield row;
    row = [];
    number += 1;
  }
}
