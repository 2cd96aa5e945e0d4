import { readFile } from 'node:fs/promises';
import { omitUndefined } from '../../../domain/defined';
import type { Match } from '../../../statements/match';
import { readStatementFile } from '../../../statements/read';
import type { LineDocument, LineStatus } from '../../../store/statement-lines';
import type { ServiceDeps } from '../../access';
import { assertReadable, createUnknown, type ImportedStatement, type ImportSource } from './import';
import { groupBy, limitCharges, matchLines } from './matching';
import { groupByAccount, type PlannedStatement, planStatements, type SetAside } from './plan';
import { StatementRefused, toRefusal } from './refusals';
import { buildRow, findRepeated } from './store-lines';

type CheckDeps = Pick<ServiceDeps, 'mongo' | 'stores' | 'now'>;

type Shown = 'statement_id' | 'account' | 'day' | 'lines' | 'open' | 'already_imported' | 'notice';

export interface CheckedStatement extends Pick<ImportedStatement, Shown> {
  would_match: number;
  /** Charges. */
  would_book: number;
  /** Why nothing of it would be stored. */
  would_refuse: { code: string; message: string } | null;
}

export interface CheckedFile {
  statements: CheckedStatement[];
  set_aside: SetAside[];
  refusals: StatementRefused[];
}

/**
 * Does what an import does, and stores nothing.
 * @see docs/statements.md#check-a-file
 * @throws ServiceError where no statement can be read, or all are of unknown accounts
 */
export async function checkStatementPath(
  deps: CheckDeps,
  path: string,
  source: ImportSource,
): Promise<CheckedFile> {
  const names = await deps.stores.ledger.listTransferNames(source.livemode);
  const read = async () => {
    await assertReadable(path);
    return await readStatementFile(await readFile(path), names);
  };
  const { statements: found } = await read().catch((error) => {
    throw toRefusal(error);
  });
  const { known, set_aside } = await groupByAccount(deps, found, source);
  if (known.length === 0) throw createUnknown(source.connector, set_aside);
  const statements: CheckedStatement[] = [];
  const refusals: StatementRefused[] = [];
  for (const own of known) {
    try {
      const { planned, gap } = await planStatements(deps, own, source);
      if (gap !== undefined) throw gap;
      statements.push(...(await checkLines(deps, planned)));
    } catch (error) {
      if (!(error instanceof StatementRefused)) throw error;
      const { code, message } = error;
      refusals.push(error);
      const nothing = { would_match: 0, would_book: 0, open: 0, already_imported: false };
      for (const { statement_id, iban: account, to_day: day, lines } of own) {
        const statement = { statement_id, account, day, lines: lines.length };
        statements.push({ ...statement, ...nothing, would_refuse: { code, message } });
      }
    }
  }
  return { statements, set_aside, refusals };
}

/** Lines of one query. */
const BATCH = 1_000;

/** Counts what the lines of an account's statements would be. */
async function checkLines(
  deps: CheckDeps,
  planned: readonly PlannedStatement[],
): Promise<CheckedStatement[]> {
  const [first] = planned;
  if (first === undefined) return [];
  const { account } = first;
  const before: LineDocument[] = [];
  const taken = new Set<string>();
  const rows: { statement: PlannedStatement; match: Match }[] = [];
  const statuses = new Map<PlannedStatement, LineStatus[]>();
  for (const statement of planned) {
    const { document, isRepeat } = statement;
    const own: LineStatus[] = [];
    statuses.set(statement, own);
    if (isRepeat || document.completed_at !== null) continue;
    const { lines } = statement.statement;
    for (let at = 0; at < lines.length; at += BATCH) {
      const all = lines
        .slice(at, at + BATCH)
        .map((line, n) => buildRow(document, line, at + n + 1));
      const stored = await deps.stores.statements.getLines(all.map(({ _id }) => _id));
      const ids = new Set(stored.map(({ _id }) => _id));
      const fresh = all.filter(({ _id }) => !ids.has(_id));
      own.push(...stored.map(({ status }) => status));
      if (document.kind === 'notification') continue;
      const names = fresh.flatMap(({ bank_reference }) => bank_reference ?? []);
      const known = await deps.stores.statements.findByBankReference(account._id, names);
      const byName = groupBy([...known, ...before, ...fresh], (row) => row.bank_reference);
      const unique = fresh.filter((row) => !findRepeated(row, byName.get(row.bank_reference)));
      for (const match of await matchLines(deps.stores, account, unique, undefined, taken)) {
        rows.push({ statement, match });
      }
      before.push(...fresh.filter(({ bank_reference }) => bank_reference !== null));
    }
  }
  const matches = rows.map(({ match }) => match);
  // No file has agreed fees.
  for (const [index, { status }] of (await limitCharges(deps, account, [], matches)).entries()) {
    const row = rows[index];
    if (row !== undefined) statuses.get(row.statement)?.push(status);
  }
  return planned.map((statement) => {
    const count = (status: LineStatus) =>
      statuses.get(statement)?.filter((each) => each === status).length ?? 0;
    const [would_match, would_book] = [count('matched'), count('booked')];
    const { statement_id, iban, to_day: day, lines } = statement.document;
    const already_imported = statement.isRepeat || statement.document.completed_at !== null;
    const open = already_imported ? 0 : lines - would_match - would_book;
    return {
      ...{ statement_id, account: iban, day, lines, would_match, would_book, open },
      ...{ already_imported, would_refuse: null },
      ...omitUndefined({ notice: statement.statement.notice }),
    };
  });
}
