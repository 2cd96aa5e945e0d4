import { rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isMissingFile } from '../../../base/errors';
import { deriveUuid } from '../../../base/ids';
import { inTransaction } from '../../../base/mongo';
import type { StatementFacts } from '../../../domain/banks/statement';
import { ServiceError } from '../../../domain/errors';
import type { Routes } from '../../../routing';
import { BANK_FILE_REFUSED, type RefusalDocument } from '../../../store/statement-refusals';
import type { WriteDeps } from '../../access';
import { toFirstRows } from '../../paging';
import { addBankAccount } from '../bank-accounts';
import { assertNoted } from '../connectors';
import {
  type ImportedFile,
  type ImportedStatement,
  importStatementPath,
} from '../statements/import';
import type { SetAside } from '../statements/plan';
import { needsOperator, StatementRefused } from '../statements/refusals';
import { endByName, openSepaBook, type SepaBook, type SepaInbound, sepaDatabase } from './book';
import { chooseName, exists, presentName } from './file-names';
import type { SepaDeps } from './files';

export interface SepaImportDeps extends WriteDeps, Routes {
  /** Service database. */
  database: string;
  connector: string;
  livemode: boolean;
  /** Files of the bank. */
  dir: string;
  iban: string;
}

export interface SepaImport {
  file: string;
  statements: ImportedStatement[];
  /** Statements of accounts that are not registered: the file can come again. */
  set_aside: SetAside[];
  /** The file has gone to `refused/`, or is not there. */
  refusal: Refusal | null;
}

type Refusal = NonNullable<SepaInbound['refusal']>;

interface RefusedImport {
  refusal: Refusal;
  'statement.refused_day'?: string;
  'statement.refused_kind'?: StatementFacts['kind'];
}

const NOTHING: ImportedFile = { statements: [], set_aside: [] };
const GAP = 'statement_gap';

/**
 * Imports what the connector took, oldest first: it may not write to the ledger itself. A refused
 * file goes to `refused/`, next to a text that says why; from there, one behind a gap is imported
 * after the one that was missing. A lost file is reported each time, and holds back no other. What is
 * refused, here or by the connector, is an attention reason of the account from then on.
 * @throws ServiceError as `addBankAccount`; `statement_incomplete`: repeat it
 */
export async function importTaken(deps: SepaImportDeps): Promise<SepaImport[]> {
  const { mongo, database, connector, livemode, iban, dir } = deps;
  const book = openSepaBook(mongo.db(sepaDatabase(database, connector)));
  const { inbound } = book;
  const imports: SepaImport[] = [];
  const putRefused = async (file: SepaInbound): Promise<void> => {
    const { _id, refusal, refused_as: name } = file;
    if (refusal === null || name === undefined) return;
    const target = join(dir, 'refused', name);
    await writeFile(`${target}.txt`, `${refusal.code}: ${refusal.message}\n`);
    // Unless it is there: another may have its former name by now.
    if (!(await exists(target))) {
      await rename(join(dir, file.folder, file.name), target).catch((error) => {
        // Another import puts it away at the same time.
        if (!isMissingFile(error)) throw error;
      });
    }
    imports.push({ file: target, ...NOTHING, refusal });
    await inbound.updateOne(
      { _id, refused_as: name },
      { $set: { folder: 'refused', name }, $unset: { refused_as: true } },
    );
  };
  // The process ended before these had left their folder.
  const interrupted = { refused_as: { $exists: true } };
  for (const file of await inbound.find(interrupted).toArray()) await putRefused(file);
  const waiting = await inbound
    .find({
      ...{ state: 'done', 'statement.imported_at': { $type: 'null' } },
      $or: [{ refusal: null }, { 'refusal.code': GAP }],
    })
    .sort({ 'statement.from_day': 1, taken_at: 1 })
    .toArray();
  const currency = 'EUR';
  if (waiting.length > 0) await addBankAccount(deps, { connector, livemode, iban, currency });
  const findLast = async () => {
    const accounts = await deps.stores.bankAccounts.list({ connector, livemode });
    return JSON.stringify(accounts.map(({ _id, closing }) => [_id, closing]));
  };
  let incomplete: ServiceError | undefined;
  for (const file of waiting) {
    const { _id } = file;
    const waits_after = await findLast();
    // Nothing has come that could close its gap.
    if (file.refusal !== null && file.statement?.waits_after === waits_after) continue;
    const result = await importOne(deps, file);
    if (result instanceof ServiceError && result.code === 'file_not_found') {
      const { code, message } = result;
      const lost = { file: file.name, ...NOTHING, refusal: { code, message } };
      if (file.refusal === null) imports.push(lost);
    } else if (result instanceof ServiceError) {
      // Its predecessor is being imported by another process, and may follow here.
      incomplete ??= result;
    } else if ('refusal' in result) {
      const { code } = result.refusal;
      const gap = code === GAP ? { 'statement.waits_after': waits_after } : {};
      // One that is an attention reason itself calls nobody twice.
      const calls = needsOperator(code) ? {} : { attention: true as const };
      if (file.refusal !== null) {
        await inbound.updateOne({ _id }, { $set: { ...result, ...gap } });
        continue;
      }
      const refused_as = await chooseName(join(dir, 'refused'), file.name, _id);
      // Before the file is put away: an import finds it no more.
      const refused = await inbound.updateOne(
        { _id, refusal: null },
        { $set: { ...result, ...gap, ...calls, refused_as } },
      );
      // Another import may have refused it at the same time.
      if (refused.modifiedCount > 0) await putRefused({ ...file, ...result, refused_as });
    } else {
      const { set_aside } = result;
      const imported = {
        ...{ 'statement.imported_at': deps.now(), 'statement.set_aside': set_aside, refusal: null },
      };
      if (file.refusal === null) await inbound.updateOne({ _id }, { $set: imported });
      else result.file = await putProcessed(deps, file, { inbound, imported });
      await endByName(book, file);
      imports.push({ ...result, refusal: null });
    }
  }
  await noteRefused(deps, book);
  if (incomplete !== undefined && imports.length === 0) throw incomplete;
  return imports;
}

async function importOne(
  deps: SepaImportDeps,
  { name, folder, statement }: SepaInbound,
): Promise<Omit<SepaImport, 'refusal'> | RefusedImport | ServiceError> {
  const { dir, connector, livemode, iban: account } = deps;
  const file = join(dir, folder, name);
  const set_aside = statement?.set_aside ?? [];
  if (folder === 'other') {
    const registered = await deps.stores.bankAccounts.list({ connector, livemode });
    const isKnown = set_aside.some((each) => registered.some(({ iban }) => iban === each.account));
    if (!isKnown) return { file, statements: [], set_aside };
  }
  try {
    const fault = statement?.fault && { account, ...statement.fault };
    const source = { connector, livemode, fault };
    return { file, ...(await importStatementPath(deps, file, source)) };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const { code, message } = error;
    if (code === 'statement_incomplete' || code === 'file_not_found') return error;
    const { day, kind } = error instanceof StatementRefused ? error.facts : {};
    return {
      refusal: { code, message },
      ...(day && { 'statement.refused_day': day }),
      ...(kind && { 'statement.refused_kind': kind }),
    };
  }
}

/** Puts a file that a gap had refused back, without its reason. @returns its path */
async function putProcessed(
  { dir }: Pick<SepaImportDeps, 'dir'>,
  { _id, folder, name: before }: SepaInbound,
  { inbound, imported }: { inbound: SepaBook['inbound']; imported: object },
): Promise<string> {
  const name = await chooseName(join(dir, 'processed'), before, _id);
  // Before the file: a process that ends here leaves it where it was.
  await inbound.updateOne(
    { _id },
    { $set: { ...imported, folder: 'processed', name }, $unset: { attention: true } },
  );
  const path = join(dir, 'processed', name);
  await rename(join(dir, folder, before), path).catch((error) => {
    if (!isMissingFile(error)) throw error;
  });
  await rm(join(dir, folder, `${before}.txt`), { force: true });
  return path;
}

/** Refused files that are attention reasons at once. */
const NOTED_MAX = 1_000;

/** Newest first. */
export async function listInbound(
  deps: SepaDeps,
  { refused, limit }: { refused: boolean; limit: number },
) {
  const found = await openInbound(deps)
    .find(refused ? { refusal: { $ne: null } } : {})
    .sort({ taken_at: -1, _id: 1 })
    .limit(limit + 1)
    .toArray();
  const { rows, has_more } = toFirstRows(found, limit);
  return { rows: rows.map(presentInbound), has_more };
}

/**
 * Says that a refused file need not be taken, so that it calls nobody anymore. A repeat changes
 * nothing.
 * @throws ServiceError `sepa_file_not_found`, `sepa_file_not_refused`, `operator_required`
 */
export async function dismissInbound(
  deps: SepaDeps & Pick<WriteDeps, 'audit' | 'stores'>,
  { file_id, livemode }: { file_id: string; livemode: boolean },
  { operator, reason }: { operator: string; reason: string },
) {
  const { mongo, stores, audit, connector, now } = deps;
  assertNoted({ livemode }, { operator, reason }, 'dismisses it');
  const inbound = openInbound(deps);
  return await inTransaction(mongo, async (session) => {
    const file = await inbound.findOne({ _id: file_id.toLowerCase() }, { session });
    if (file === null) {
      throw new ServiceError('sepa_file_not_found', `${connector} has taken no file ${file_id}.`);
    }
    const { _id, refusal, dismissed } = file;
    if (refusal === null) {
      const message = `The file ${_id} was taken: there is nothing to dismiss.`;
      throw new ServiceError('sepa_file_not_refused', message);
    }
    if (dismissed !== undefined) return presentInbound(file);
    const at = now();
    const noted = { operator, reason, at };
    const change = { $set: { dismissed: noted }, $unset: { attention: true } } as const;
    await inbound.updateOne({ _id }, change, { session });
    const { statements } = stores;
    const [row] = await statements.listByIds([nameRow({ connector, livemode }, file)]);
    const acknowledged = { ...noted, at: at.toISOString() };
    if (row !== undefined) await statements.acknowledgeRefusal(row, acknowledged, session);
    const about = { account_id: null, livemode, target: _id };
    const after = { connector, code: refusal.code, operator, reason };
    await audit({ act: 'sepa_file.dismissed', ...about, after }, session);
    return presentInbound({ ...file, dismissed: noted });
  });
}

/**
 * Makes refused files attention reasons of their account, and ends the reasons of others. One that an
 * operator acknowledged, or whose statement came otherwise, calls nobody anymore.
 */
async function noteRefused(
  deps: WriteDeps & Routes & { connector: string; livemode: boolean; iban: string },
  { inbound }: Pick<SepaBook, 'inbound'>,
): Promise<void> {
  const { connector, livemode, iban } = deps;
  const { statements } = deps.stores;
  const about = { connector, livemode };
  const open = await inbound
    .find({ attention: true })
    .sort({ taken_at: 1, _id: 1 })
    .limit(NOTED_MAX)
    .toArray();
  const ids = open.map((file) => nameRow(about, file));
  const stored = new Map((await statements.listByIds(ids)).map((row) => [row._id, row]));
  const times = new Set([...stored.values()].map(({ since }) => since));
  for (const [at, file] of open.entries()) {
    const { _id: id, taken_at, refusal, statement } = file;
    const _id = ids[at] ?? '';
    const row = stored.get(_id);
    if (row?.attention === false) {
      await inbound.updateOne({ _id: id, taken_at }, { $unset: { attention: true } });
    }
    if (row !== undefined || refusal === null) continue;
    const currency = 'EUR';
    const { _id: bank_account_id } = await addBankAccount(deps, { ...about, iban, currency });
    let since = taken_at.getTime();
    // A reason is known by its account and time.
    while (times.has(since)) since += 1;
    times.add(since);
    const { code, message } = refusal;
    await statements.refuse({
      ...{ _id, ...about, bank_account_id, sha256: id, code: BANK_FILE_REFUSED, message },
      ...{ statement_id: null, day: statement?.refused_day ?? null, amount: null, currency, since },
      ...{ attention: true, acknowledged: null },
      ...(statement?.refused_kind && { kind: statement.refused_kind }),
      file: { id, name: presentName(file.received_as ?? file.name), code },
    });
  }
  await statements.endOtherFiles(about, ids);
}

function openInbound({ mongo, database, connector }: SepaDeps) {
  return openSepaBook(mongo.db(sepaDatabase(database, connector))).inbound;
}

/** Names another row where the file is refused again, or otherwise. */
function nameRow(
  { connector, livemode }: Pick<RefusalDocument, 'connector' | 'livemode'>,
  { _id, taken_at, refusal }: SepaInbound,
): string {
  const identity = [connector, livemode, _id, taken_at.getTime(), refusal?.code];
  return `sr_${deriveUuid(JSON.stringify(identity))}`;
}

function presentInbound(file: SepaInbound) {
  const { _id: id, name, folder, message: kind, refusal, dismissed } = file;
  return {
    ...{ id, name: presentName(name), folder, kind },
    ...{ code: refusal?.code ?? null, message: refusal?.message ?? null },
    taken_at: file.taken_at.toISOString(),
    dismissed: dismissed ? { ...dismissed, at: dismissed.at.toISOString() } : null,
  };
}
