import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isMissingFile } from '../../base/errors';
import { ServiceError } from '../../domain/errors';
import type { Routes } from '../../routing';
import { addBankAccount } from '../bank-accounts';
import type { WriteDeps } from '../deps';
import { type ImportedStatement, importStatementPath } from '../statements/import';
import { openSepaBook, type SepaInbound, sepaDatabase } from './book';

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

/** A repeat may overcome them. */
const REPEATED: readonly string[] = ['statement_incomplete', 'file_not_found'];

/**
 * Imports what the connector took, oldest first: it may not write to the ledger itself. A refused
 * file goes to `refused/`, next to a text that says why.
 * @throws ServiceError as `addBankAccount`; `statement_incomplete`, `file_not_found`: repeat it
 */
export async function importTaken(deps: SepaImportDeps): Promise<SepaImport[]> {
  const { mongo, database, connector, livemode, iban } = deps;
  const { inbound } = openSepaBook(mongo.db(sepaDatabase(database, connector)));
  const imports: SepaImport[] = [];
  const putRefused = async ({ _id, folder, name, refusal }: SepaInbound): Promise<void> => {
    if (refusal === null) return;
    imports.push(await explainRefusal(deps, { folder, name }, refusal));
    await inbound.updateOne({ _id }, { $set: { folder: 'refused' } });
  };
  // The process ended before these had left their folder.
  const interrupted = { state: 'done', folder: 'processed', refusal: { $ne: null } } as const;
  for (const file of await inbound.find(interrupted).toArray()) await putRefused(file);
  const waiting = await inbound
    .find({ state: 'done', refusal: null, 'statement.imported_at': { $type: 'null' } })
    .sort({ 'statement.from_day': 1, taken_at: 1 })
    .toArray();
  if (waiting.length === 0) return imports;
  await addBankAccount(deps, { connector, livemode, iban, currency: 'EUR' });
  for (const file of waiting) {
    const { _id } = file;
    const result = await importOne(deps, file);
    if ('refusal' in result) {
      // Before the file is put away: an import finds it no more.
      await inbound.updateOne({ _id }, { $set: result });
      await putRefused({ ...file, ...result });
    } else {
      imports.push({ ...result, refusal: null });
      await inbound.updateOne({ _id }, { $set: { 'statement.imported_at': deps.now() } });
    }
  }
  return imports;
}

async function importOne(
  deps: SepaImportDeps,
  { name, folder }: SepaInbound,
): Promise<Omit<SepaImport, 'refusal'> | { refusal: Refusal }> {
  const { dir, connector, livemode } = deps;
  const path = join(dir, folder, name);
  try {
    const statements = await importStatementPath(deps, path, { connector, livemode });
    return { file: path, statements };
  } catch (error) {
    if (!(error instanceof ServiceError) || REPEATED.includes(error.code)) throw error;
    const { code, message } = error;
    return { refusal: { code, message } };
  }
}

/** Puts a file into `refused/`, unless it is there. */
async function explainRefusal(
  { dir }: Pick<SepaImportDeps, 'dir'>,
  { folder, name }: Pick<SepaInbound, 'folder' | 'name'>,
  refusal: Refusal,
): Promise<SepaImport> {
  const target = join(dir, 'refused', name);
  await writeFile(`${target}.txt`, `${refusal.code}: ${refusal.message}\n`);
  await rename(join(dir, folder, name), target).catch((error) => {
    if (!isMissingFile(error)) throw error;
  });
  return { file: target, statements: [], refusal };
}
