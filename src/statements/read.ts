import { setImmediate } from 'node:timers/promises';
import { normalizeAccount } from '../domain/banks/iban';
import { InvalidStatement, type Statement, type StatementLine } from '../domain/banks/statement';
import { isCurrency, parseDecimalMoney } from '../domain/money/money';
import { isDay } from '../domain/shape';
import { createCamtReader } from './camt';
import { createDecoder } from './encoding';
import { type BankFile, type FileSource, findKind, isXml, readFiles } from './intake';
import { parseReference } from './reference';
import { ANSWER_MESSAGES, readMessages, STATEMENT_MESSAGES } from './xml';

export interface StatementFile {
  /** Names of the messages, or `csv`. */
  format: string;
  /** Oldest first. */
  statements: Statement[];
}

const { kinds, expected } = STATEMENT_MESSAGES;
const MESSAGES = { kinds: { ...kinds, ...ANSWER_MESSAGES }, expected };

/**
 * Reads XML or CSV, or a ZIP of them. An answer to a file of ours in the same file is left to its
 * connector.
 * @param names of own transfers, which texts may have
 * @throws InvalidStatement
 */
export async function readStatementFile(
  source: FileSource,
  names: readonly string[] = [],
): Promise<StatementFile> {
  const formats = new Set<string>();
  const reader = createCamtReader();
  let rows: Statement[] = [];
  let answer: string | undefined;
  let isAnswer = false;
  await readFiles(source, async (file) => {
    if (isXml(file.head) || findKind(file.head) !== undefined) {
      await readMessages(file, MESSAGES, {
        take: (part) => {
          isAnswer = !part.message.startsWith('camt');
          if (isAnswer) answer = part.message;
          else formats.add(part.message);
          return isAnswer ? undefined : reader.take(part);
        },
        note: (notice) => (isAnswer ? undefined : reader.note(notice)),
        names,
      });
    } else {
      formats.add('csv');
      rows = rows.concat(await readCsv(file));
    }
  });
  const statements = [...reader.end(), ...rows];
  if (formats.size === 0 && answer !== undefined) {
    throw new InvalidStatement('format_not_supported', `The file is ${answer}: ${expected}.`);
  }
  if (formats.size === 0) throw fault('The ZIP has no file.');
  return { format: [...formats].join(', '), statements };
}

/** @see docs/statements.md#csv */
const REQUIRED = ['statement_id', 'iban', 'currency', 'opening', 'closing', 'day', 'amount'];
const OPTIONAL = ['value_date', 'reference', 'bank_reference', 'fee', 'kind', 'sequence'];

type Row = Readonly<Record<string, string>> & { readonly number: string };

/**
 * RFC 4180 with commas or semicolons, one row for each line.
 * @throws InvalidStatement
 */
async function readCsv(file: BankFile): Promise<Statement[]> {
  const statements = new Map<string, Statement & { lines: StatementLine[] }>();
  for await (const row of readRows(file)) {
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
    const line = readLine(row, statement.currency, statement.lines.length + 1);
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
  // A copy keeps no chunk of the file.
  return parseReference(text && Buffer.from(text).toString());
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

async function* readRows(file: BankFile): AsyncGenerator<Row> {
  let names: string[] | undefined;
  let number = 0;
  for await (const cells of readCells(file)) {
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

/** Characters. */
const ROW_MAX = 20_000;

async function* readCells({ head, chunks }: BankFile): AsyncGenerator<string[]> {
  const decoder = createDecoder(head);
  let separator: string | undefined;
  let number = 1;
  let rest = '';
  function* split(isEnd: boolean): Generator<string[]> {
    if (decoder.flaw !== undefined) {
      const message = `The file is no XML, and CSV has to be UTF-8. ${decoder.flaw}`;
      throw new InvalidStatement('format_not_supported', message);
    }
    const end = rest.search(/\r?\n/);
    if (separator === undefined && end < 0 && !isEnd && rest.length < ROW_MAX) return;
    const first = end < 0 ? rest : rest.slice(0, end);
    separator ??= first.includes(';') ? ';' : ',';
    let from = 0;
    while (from < rest.length) {
      const row = readRow(rest, from, separator, isEnd);
      if (row === undefined) {
        if (!isEnd && rest.length - from < ROW_MAX) break;
        throw fault(`Row ${number} has a quote that is not closed or doubled, or is too long.`);
      }
      yield row.cells;
      from = row.end;
      number += 1;
    }
    rest = rest.slice(from);
  }
  for await (const chunk of chunks) {
    // A quote after a byte order mark would not begin its cell.
    rest = `${rest}${decoder.decode(chunk)}`.replace(/^\ufeff/, '');
    yield* split(false);
    await setImmediate();
  }
  rest += decoder.decode();
  yield* split(true);
}

/** @returns undefined where the row goes on, or has a quote that does not end */
function readRow(text: string, from: number, separator: string, isEnd: boolean) {
  const pattern = new RegExp(
    `(?:"((?:[^"]|"")*)"|([^"${separator}\\r\\n]*))(${separator}|\\r?\\n|$)`,
    'y',
  );
  pattern.lastIndex = from;
  const cells: string[] = [];
  for (;;) {
    const match = pattern.exec(text);
    if (match === null) return undefined;
    const [, quoted, plain = '', last = ''] = match;
    cells.push(quoted?.replaceAll('""', '"') ?? plain);
    const isCut = pattern.lastIndex === text.length && last !== '\n' && last !== '\r\n';
    if (isCut && !isEnd) return undefined;
    if (isCut && last === separator) cells.push('');
    if (isCut || last !== separator) return { cells, end: pattern.lastIndex };
  }
}
