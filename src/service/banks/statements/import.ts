import { stat } from 'node:fs/promises';
import { inTransaction } from '../../../base/mongo';
import {
  buildMadeStatement,
  findUnexplained,
  type Statement,
} from '../../../domain/banks/statement';
import { omitUndefined } from '../../../domain/defined';
import { ServiceError } from '../../../domain/errors';
import type { NewEntry } from '../../../ledger/entries';
import { ENTRY_LINES } from '../../../ledger/entry-lines';
import { hashLines } from '../../../statements/compare';
import { assertSize, type FileSource, hashFile } from '../../../statements/intake';
import { readStatementFile } from '../../../statements/read';
import type { BankAccountDocument } from '../../../store/bank-accounts';
import {
  type MadeStatementDocument,
  openMadeStatements,
  openMadeTransfers,
  type StatementDocument,
} from '../../../store/statements';
import type { WriteDeps } from '../../access';
import { assertNoted } from '../connectors';
import { type LineAct, showStatement } from './lines';
import { buildLineEntry, rematch } from './matching';
import { checkNumber, fillGap, findGap } from './numbering';
import {
  assertFree,
  assertNext,
  type Bank,
  groupByAccount,
  type PlannedStatement,
  planStatements,
  type SetAside,
} from './plan';
import { closeDays } from './reconciliation';
import { StatementRefused, storeRefusal, toRefusal } from './refusals';
import { storeLines } from './store-lines';

export interface ImportedStatement {
  id: string;
  /** The bank's own id. */
  statement_id: string;
  kind: StatementDocument['kind'];
  /** IBAN, or the bank's id of it. */
  account: string;
  day: string;
  lines: number;
  matched: number;
  /** Charges. */
  booked: number;
  open: number;
  already_imported: boolean;
  /** How it was read otherwise than it says. */
  notice?: string;
}

export interface ImportedFile {
  statements: ImportedStatement[];
  /** Statements of accounts that are not registered: the file can come again. */
  set_aside: SetAside[];
}

/** Most days of an account that are imported at once; a repeat takes the next. */
const MADE_MAX = 40;

export interface ImportSource extends Bank {
  /** Why its connector believed no statement of an account, which is refused. */
  fault?: { account: string; code: string; message: string } | undefined;
}

/** Reads at most 64 MiB. @throws ServiceError `file_not_found`, `file_too_large` */
export async function importStatementPath(
  deps: WriteDeps,
  path: string,
  source: ImportSource,
): Promise<ImportedFile> {
  const { connector, livemode } = source;
  const file = { connector, livemode, sha256: null };
  await refuseIn(deps, file, () => assertReadable(path));
  return await importStatements(deps, path, source);
}

export async function assertReadable(path: string): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (!found?.isFile()) throw new ServiceError('file_not_found', `There is no file ${path}.`);
  assertSize(found.size);
}

/**
 * Checks the statements of each account in a file, then stores them line by line: all of an
 * account, or none, whatever those of others are. A repeat continues where it was interrupted, and
 * adds nothing to what is complete.
 * @see docs/statements.md
 * @throws ServiceError with the codes of docs/statements.md#refusals, once the other accounts are
 * imported
 */
export async function importStatements(
  deps: WriteDeps,
  content: FileSource,
  { fault, ...source }: ImportSource,
): Promise<ImportedFile> {
  await ensureIndexes(deps);
  const sha256 = await hashFile(content);
  const file = { ...source, sha256 };
  const names = await deps.stores.ledger.listTransferNames(source.livemode);
  const { known, set_aside } = await refuseIn(deps, file, async () => {
    const { statements: found } = await readStatementFile(content, names);
    if ((await hashFile(content)) !== sha256) {
      throw new StatementRefused('file_invalid', 'The file changed while it was read.');
    }
    const grouped = await groupByAccount(deps, found, file);
    if (grouped.known.length === 0) throw createUnknown(source.connector, grouped.set_aside);
    return grouped;
  });
  const statements = await importGroups(deps, known, { ...file, fault });
  return { statements, set_aside };
}

/**
 * Imports what the connector itself has made of registered accounts, and was not imported. A repeat
 * continues where it was interrupted.
 * @see docs/connectors.md#statements-of-a-balance
 * @throws ServiceError with the codes of docs/statements.md#refusals, once the other accounts are
 * imported
 */
export async function importMade(deps: WriteDeps, source: Bank): Promise<ImportedFile> {
  await ensureIndexes(deps);
  const { connector, livemode } = source;
  const made = openMadeStatements(deps.stores.statements.openConnectorDb(connector));
  const groups: Statement[][] = [];
  for (const account of await deps.stores.bankAccounts.list({ connector, livemode })) {
    const { iban, currency, closing, accepted } = account;
    const fresh = { account: iban, currency, day: { $gt: closing?.day ?? '' } };
    const found = await made.find(fresh).sort({ day: 1 }).limit(MADE_MAX).toArray();
    // What an operator has accepted is about to be made again, with its line.
    const isAwaited = (each: MadeStatementDocument) =>
      accepted?.day === each.day && accepted.amount === findUnexplained(each);
    // Each for itself: one that does not add up refuses no day before it.
    const ready = found.filter((each) => !isAwaited(each));
    groups.push(...ready.map((each) => [buildMadeStatement(each)]));
  }
  try {
    return { statements: await importGroups(deps, groups, source), set_aside: [] };
  } finally {
    await meetTransfers(deps, source);
  }
}

/** Matches lines of other banks with the ends of transfers that are posted, by all names known by now. */
async function meetTransfers(deps: WriteDeps, { connector, livemode }: Bank): Promise<void> {
  const { bankAccounts, ledger, statements } = deps.stores;
  const made = openMadeTransfers(statements.openConnectorDb(connector));
  const accounts = await bankAccounts.list({ livemode });
  const own = accounts.filter((account) => account.connector === connector);
  for (const currency of new Set(own.map((account) => account.currency))) {
    const open = await ledger.listOpenTransfers({ livemode, currency });
    const ends = open.filter((end) => end.connector === connector);
    if (ends.length === 0) continue;
    for (const { entry_id, bank_reference } of ends) {
      const { names = [] } = (await made.findOne({ _id: bank_reference ?? '' })) ?? {};
      if (names.length > 0) await ledger.nameTransfer(entry_id, names);
    }
    for (const account of accounts) {
      if (account.connector === connector || account.currency !== currency) continue;
      await rematch(deps, account);
      await closeDays(deps, account);
    }
  }
}

/** An import may be the first write of the installation. */
async function ensureIndexes({ stores }: WriteDeps): Promise<void> {
  const { auditLog, bankAccounts, ledger, statements } = stores;
  await Promise.all([auditLog, bankAccounts, ledger, statements].map((s) => s.ensureIndexes()));
}

/**
 * Imports groups of statements, each of one account, all of a group or none.
 * @param source `sha256`: of their file; absent: each group stands for itself
 */
async function importGroups(
  deps: WriteDeps,
  groups: readonly (readonly Statement[])[],
  { fault, sha256, ...source }: ImportSource & { sha256?: string },
): Promise<ImportedStatement[]> {
  const imported: ImportedStatement[] = [];
  const refusals: StatementRefused[] = [];
  for (const own of groups) {
    const file = { ...source, sha256: sha256 ?? hashLines(own.flatMap(({ lines }) => lines)) };
    try {
      await refuseIn(deps, file, async () => {
        const { planned, gap } = await planStatements(deps, own, file);
        if (fault !== undefined && own.some(({ iban }) => iban === fault.account)) {
          throw gap ?? new StatementRefused(fault.code, fault.message);
        }
        if (gap !== undefined) {
          for (const each of planned) await importOne(deps, each);
          throw gap;
        }
        for (const each of planned) imported.push(await importOne(deps, each));
      });
    } catch (error) {
      if (!(error instanceof StatementRefused)) throw error;
      refusals.push(error);
    }
  }
  throwRefusals(refusals, imported);
  return imported;
}

export function createUnknown(
  connector: string,
  [first, ...more]: readonly SetAside[],
): StatementRefused {
  const { account, statement_id } = first ?? { account: '', statement_id: '' };
  const others = more.length === 0 ? '' : `, nor the other ${more.length} of the file`;
  const message = `${connector} has no bank account ${account}${others}: add it with \`bank-account add\`.`;
  return new StatementRefused('bank_account_unknown', message, { statement_id });
}

/** @throws StatementRefused the first, which names the others */
export function throwRefusals(
  [first, ...more]: readonly StatementRefused[],
  imported: readonly Pick<ImportedStatement, 'account'>[] = [],
): void {
  if (first === undefined) return;
  const accounts = [...new Set(imported.map(({ account }) => account))].join(', ');
  const message = [...new Set([first, ...more].map((each) => each.message))].join(' ');
  const rest = accounts === '' ? '' : ` Of this file, ${accounts} was imported.`;
  throw new StatementRefused(first.code, `${message}${rest}`, first.facts);
}

/** Stores the refusal of a step. */
async function refuseIn<T>(
  deps: WriteDeps,
  file: Omit<ImportSource, 'fault'> & { sha256: string | null },
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const refusal = toRefusal(error);
    if (refusal instanceof StatementRefused) await storeRefusal(deps, refusal, file);
    throw refusal;
  }
}

async function importOne(deps: WriteDeps, planned: PlannedStatement): Promise<ImportedStatement> {
  const { account, document } = planned;
  const already_imported = document.completed_at !== null || planned.isRepeat;
  if (!already_imported) {
    await begin(deps, planned);
    await storeLines(deps, planned);
    await complete(deps, planned);
  }
  // A notification may say what a sum is about that was imported before.
  await rematch(deps, account);
  await closeDays(deps, account);
  const counts = await deps.stores.statements.countLines([document._id]);
  const { matched = 0, booked = 0, open = 0, announced = 0 } = counts;
  const { _id: id, statement_id, kind, iban, to_day: day, lines } = document;
  return {
    ...{ id, statement_id, kind, account: iban, day, lines, matched, booked },
    ...{ open: open + announced, already_imported },
    ...omitUndefined({ notice: planned.statement.notice }),
  };
}

/** Stores the statement, and that its account has it in progress, once. */
async function begin(
  { mongo, stores, now }: WriteDeps,
  { account, document, previous, sha256 }: PlannedStatement,
): Promise<void> {
  const { bankAccounts, ledger, statements } = stores;
  await inTransaction(mongo, async (session) => {
    const stored = await statements.get(document._id, session);
    if (stored !== null && (stored.sha256 === sha256 || stored.completed_at !== null)) return;
    const { _id, statement_id, kind, behind_gap } = document;
    const isFree =
      kind === 'statement'
        ? await bankAccounts.beginImport(account._id, previous, { _id, statement_id }, session)
        : behind_gap === undefined ||
          (await statements.findSame(document, undefined, session)) === null;
    // Another statement came since the check.
    if (stored !== null || !isFree) {
      const current = await bankAccounts.get(account._id, session);
      if (current !== null) assertFree(current, document);
      const gap = current && assertNext(document, current.closing);
      const message = `Another import was faster than that of statement ${statement_id}: import it again.`;
      const code = stored === null ? 'statement_incomplete' : 'statement_conflict';
      throw gap ?? new StatementRefused(code, message);
    }
    await statements.insert(document, session);
    const announced =
      kind === 'statement' && (await statements.findSame(document, 'open', session));
    if (announced) await statements.setBehindGap(announced._id, 'filled', session);
    if (previous === null && document.opening) {
      await ledger.post(buildOpening(account, document.opening, document, now), session);
    }
  });
}

/** The id names the statement: one that is given up is not the last that opens the account. */
function buildOpening(
  { _id, livemode, currency }: BankAccountDocument,
  amount: number,
  { _id: step, from_day }: Pick<StatementDocument, '_id' | 'from_day'>,
  now: () => Date,
): NewEntry {
  return {
    ...{ kind: 'bank_opening', resource_id: _id, step, account_id: _id, livemode, currency },
    ...{ at: now().toISOString(), value_date: from_day },
    lines: ENTRY_LINES.bank_opening(amount),
  };
}

/** Makes the statement count, once. */
async function complete(
  { mongo, stores, now, audit }: WriteDeps,
  { document, previous, gap }: PlannedStatement,
): Promise<void> {
  const { _id, kind, bank_account_id, statement_id, livemode, connector } = document;
  const { closing: amount, to_day: day, lines, iban } = document;
  await inTransaction(mongo, async (session) => {
    const times = { completed_at: now().toISOString(), closed_at: null };
    if (!(await stores.statements.complete(_id, times, session))) return;
    if (kind === 'statement' && amount !== null) {
      const closing = gap === null ? { amount, day, statement_id } : undefined;
      await stores.bankAccounts.endImport(bank_account_id, _id, closing, session);
      if (gap === null) await checkNumber(stores, document, previous, { now, session });
      // Another import may have filled a part of the gap since the plan.
      const open = gap && (await findGap({ stores, now }, document, [], session));
      if (open)
        await stores.statements.fillMissing(open._id, fillGap(open, document, now), session);
    }
    await stores.statements.resolveRefusals(bank_account_id, document, session);
    const after = { connector, account: iban, statement_id, day, lines };
    const change = { act: 'statement.imported', account_id: null, livemode } as const;
    await audit({ ...change, target: _id, after }, session);
  });
}

/** Lines of one transaction. */
const BATCH = 200;

/**
 * Gives up an import that was interrupted: its lines are reversed, and the account takes other
 * statements, this one too. A repeat continues, and changes nothing after the end.
 * @see docs/statements.md#files
 * @throws ServiceError `statement_not_found`, `statement_ambiguous`, `statement_complete`,
 * `operator_required`
 */
export async function abandonStatement(
  deps: WriteDeps,
  id: string,
  { operator, reason }: LineAct,
): Promise<StatementDocument> {
  const { stores, now } = deps;
  const { statement } = await showStatement(deps, id, { limit: 1 });
  assertNoted(statement, { operator, reason }, 'gives it up');
  // From now on, no import adds lines.
  if (!(await stores.statements.abandon(statement._id, now().toISOString()))) {
    const message = `Statement ${statement.statement_id} is imported to its end.`;
    throw new ServiceError('statement_complete', message);
  }
  while (await abandonBatch(deps, statement)) {
    // Each batch is a transaction.
  }
  const { _id, bank_account_id, statement_id, kind, livemode, opening } = statement;
  await inTransaction(deps.mongo, async (session) => {
    const account = await stores.bankAccounts.get(bank_account_id, session);
    const isNotification = kind === 'notification';
    const isDone = isNotification
      ? statement.abandoned_at !== undefined
      : account?.importing?._id !== _id;
    if (account === null || isDone) return;
    if (account.closing === null && !isNotification && opening) {
      const entry = buildOpening(account, -opening, statement, now);
      await stores.ledger.post({ ...entry, step: `${_id}:abandoned` }, session);
    }
    await stores.bankAccounts.endImport(bank_account_id, _id, undefined, session);
    const announced = await stores.statements.findSame(statement, 'filled', session);
    if (announced !== null) await stores.statements.setBehindGap(announced._id, 'open', session);
    const after = { statement_id, lines: statement.lines, operator, reason };
    const about = { account_id: null, livemode, target: _id };
    await deps.audit({ act: 'statement.abandoned', ...about, after }, session);
  });
  return (await stores.statements.get(_id)) ?? statement;
}

/** @returns false when no line is left */
async function abandonBatch(
  { mongo, stores: { ledger, statements }, now }: WriteDeps,
  statement: StatementDocument,
): Promise<boolean> {
  const { _id, kind } = statement;
  return await inTransaction(mongo, async (session) => {
    const rows = await statements.listLeft(_id, BATCH, session);
    if (rows.length === 0) return false;
    if (kind === 'statement') {
      const entries = rows.map((row) => {
        const unmatched = row.amount - row.parts.clearing - row.parts.bank_fees;
        const lines = ENTRY_LINES.bank_line_abandoned({ ...row.parts, unmatched });
        return buildLineEntry('bank_line_abandoned', row, lines, { now });
      });
      await ledger.postAll(entries, session);
      const cleared = rows.flatMap((row) => row.entries);
      if (cleared.length > 0) await ledger.unclear(cleared, session);
    }
    const announced = await statements.findSame(statement, 'filled', session);
    await statements.abandonLines(rows, announced?._id, session);
    return true;
  });
}
