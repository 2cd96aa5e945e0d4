import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
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
  refusal: { code: string; message: string } | null;
}

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
  const waiting = await inbound
    .find({ state: 'done', refusal: null, 'statement.imported_at': { $type: 'null' } })
    .sort({ 'statement.from_day': 1, taken_at: 1 })
    .toArray();
  if (waiting.length === 0) return [];
  await addBankAccount(deps, { connector, livemode, iban, currency: 'EUR' });
  const imports: SepaImport[] = [];
  for (const file of waiting) {
    const result = await importOne(deps, file);
    imports.push(result);
    const $set =
      result.refusal === null
        ? { 'statement.imported_at': deps.now() }
        : { folder: 'refused' as const, refusal: result.refusal };
    await inbound.updateOne({ _id: file._id }, { $set });
  }
  return imports;
}

async function importOne(deps: SepaImportDeps, { name, folder }: SepaInbound): Promise<SepaImport> {
  const { dir, connector, livemode } = deps;
  const path = join(dir, folder, name);
  try {
    const statements = await importStatementPath(deps, path, { connector, livemode });
    return { file: path, statements, refusal: null };
  } catch (error) {
    if (!(error instanceof ServiceError) || REPEATED.includes(error.code)) throw error;
    const { code, message } = error;
    const target = join(dir, 'refused', name);
    await writeFile(`${target}.txt`, `${code}: ${message}\n`);
    await rename(path, target);
    return { file: target, statements: [], refusal: { code, message } };
  }
}
