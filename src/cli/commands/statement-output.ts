import { formatMoney } from '../../domain/money';
import type { ImportedStatement } from '../../service/banks/statements/import';
import type { ShownEntry, ShownLine } from '../../service/banks/statements/reconciliation';
import { textOption } from '../options';
import { fields, table } from '../output';

export const Connector = textOption('the connector of the bank', 'name');
export const Account = textOption('IBAN of one account', 'iban').optional();

export function formatImport(row: ImportedStatement): string {
  return fields([
    ['Statement', `${row.statement_id} (${row.id})`],
    ['Account', row.account],
    ['Day', row.day],
    ['Lines', String(row.lines)],
    ['Matched', String(row.matched)],
    ['Booked', String(row.booked)],
    ['Open', String(row.open)],
    ['Imported', row.already_imported ? 'before' : 'now'],
    ...(row.notice === undefined ? [] : [['Notice', row.notice] as [string, string]]),
  ]);
}

export function formatBoolean(value: boolean): string {
  return value ? 'yes' : 'no';
}

const LINE_COLUMNS = ['LINE', 'DAY', 'AMOUNT', 'REFERENCE', 'BANK REFERENCE', 'STATUS', 'OWNER'];

export function formatLines(lines: readonly ShownLine[], none = 'It has no such lines.'): string {
  const rows = lines.map((line) => [
    ...[line.id, line.day, formatMoney(line.amount, line.currency), line.reference ?? '-'],
    ...[line.bank_reference ?? '-', line.status, line.owner ?? '-'],
  ]);
  return table(LINE_COLUMNS, rows, none);
}

export function formatEntries(entries: readonly ShownEntry[]): string {
  const rows = entries.map(({ entry_id, day, amount, currency, age_days }) => [
    entry_id,
    day,
    formatMoney(amount, currency),
    `${age_days} d`,
  ]);
  return table(['ENTRY', 'DAY', 'AMOUNT', 'AGE'], rows, '');
}
