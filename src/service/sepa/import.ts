import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isMissingFile } from '../../base/errors';
import { ServiceError } from '../../domain/errors';
import type { Routes } from '../../routing';
import { addBankAccount } from '../bank-accounts';
import type { WriteDeps } from '../deps';
import { type ImportedStatement, importStatementPath } from '../statements/import';
import { openSepaBook, type SepaInbound, sepaDatabase } from './book';
import { chooseName, exists } from './file-names';

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
  /** The file has gone to `refused/`. */
  refusal: Refusal | null;
}

type Refusal = NonNullable<SepaInbound['refusal']>;

/**
 * Imports what the connector took, oldest first: it may not write to the ledger itself. A refused
 * file goes to `refused/`, next to a text that says why.
 * @throws ServiceError as `addBankAccount`; `statement_incomplete`, `file_not_found`: repeat it
 */
export async function importTaken(deps: SepaImportDeps): Promise<SepaImport[]> {
  const { mongo, database, connector, livemode, iban, dir } = deps;
  const { inbound } = openSepaBook(mongo.db(sepaDatabase(database, connector)));
  const imports: SepaImport[] = [];
  const putRefused = async (file: SepaInbound): Promise<void> => {
    const { _id, refusal, refused_as: name } = file;
    if (refusal === null || name === undefined) return;
    imports.push(await explainRefusal(dir, file, { refusal, name }));
    await inbound.updateOne(
      { _id, refused_as: name },
      { $set: { folder: 'refused', name }, $unset: { refused_as: true } },
    );
  };
  // The process ended before these had left their folder.
  const interrupted = { refused_as: { $exists: true } };
  for (const file of await inbound.find(interrupted).toArray()) await putRefused(file);
  const waiting = await inbound
    .find({ state: 'done', refusal: null, 'statement.imported_at': { $type: 'null' } })
    .sort({ 'statement.from_day': 1, taken_at: 1 })
    .toArray();
  if (waiting.length === 0) return imports;
  await addBankAccount(deps, { connector, livemode, iban, currency: 'EUR' });
  let incomplete: ServiceError | undefined;
  for (const file of waiting) {
    const { _id } = file;
    const result = await importOne(deps, file);
    if (result instanceof ServiceError) {
      // It waits for a statement that another process had begun, which may follow here.
      incomplete ??= result;
    } else if ('refusal' in result) {
      const refused_as = await chooseName(join(dir, 'refused'), file.name, _id);
      // Before the file is put away: an import finds it no more.
      const refused = await inbound.updateOne(
        { _id, refusal: null },
        { $set: { ...result, refused_as } },
      );
      // Another import may have refused it at the same time.
      if (refused.modifiedCount > 0) await putRefused({ ...file, ...result, refused_as });
    } else {
      imports.push({ ...result, refusal: null });
      await inbound.updateOne({ _id }, { $set: { 'statement.imported_at': deps.now() } });
    }
  }
  if (incomplete !== undefined && imports.length === 0) throw incomplete;
  return imports;
}

async function importOne(
  deps: SepaImportDeps,
  { name, folder }: SepaInbound,
): Promise<Omit<SepaImport, 'refusal'> | { refusal: Refusal } | ServiceError> {
  const { dir, connector, livemode } = deps;
  const path = join(dir, folder, name);
  try {
    const statements = await importStatementPath(deps, path, { connector, livemode });
    return { file: path, statements };
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code === 'file_not_found') throw error;
    if (error.code === 'statement_incomplete') return error;
    const { code, message } = error;
    return { refusal: { code, message } };
  }
}

/** Puts a file into `refused/`, unless it is there: another may have its former name by now. */
async function explainRefusal(
  dir: string,
  { folder, name: before }: Pick<SepaInbound, 'folder' | 'name'>,
  { refusal, name }: { refusal: Refusal; name: string },
): Promise<SepaImport> {
  const target = join(dir, 'refused', name);
  await writeFile(`${target}.txt`, `${refusal.code}: ${refusal.message}\n`);
  if (!(await exists(target))) {
    await rename(join(dir, folder, before), target).catch((error) => {
      // Another import puts it away at the same time.
      if (!isMissingFile(error)) throw error;
    });
  }
  return { file: target, statements: [], refusal };
}
