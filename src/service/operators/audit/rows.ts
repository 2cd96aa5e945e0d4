import type { Document, MongoClient } from 'mongodb';
import type { AuditFacts } from '../../../domain/account/audit-log';
import { type InSnapshot, openSnapshots, type Read, readAll } from '../../../ledger-check/snapshot';
import type { ChainedLine } from '../../../store/audit-log';
import { AUDITED_KINDS, type AuditedKind } from './kinds';

/** No line created the row (`…_unexplained`), or explains its state (`…_changed`). */
interface RowFinding {
  code: string;
  account_id: string | null;
  id: string;
  /** Facts that differ from the lines. */
  fields: string[];
}

export interface RowsCheck {
  rows: number;
  unexplained: number;
  findings: RowFinding[];
}

const FINDINGS_MAX = 1_000;
/** Rows of one account. */
const ROWS_AT_ONCE = 500;

/**
 * Compares rows with their audit lines, while both may change. A line without a place in a chain
 * explains nothing.
 */
export async function verifyRows(client: MongoClient, database: string): Promise<RowsCheck> {
  const inSnapshot = openSnapshots(client, database);
  const check: RowsCheck = { rows: 0, unexplained: 0, findings: [] };
  for (const [noun, kind] of Object.entries(AUDITED_KINDS)) {
    for await (const batch of listBatches(client, database, kind)) {
      const findings = await checkBatch(inSnapshot, { noun, ...kind }, batch);
      check.rows += batch.ids.length;
      check.unexplained += findings.length;
      check.findings.push(...findings.slice(0, FINDINGS_MAX - check.findings.length));
    }
  }
  return check;
}

interface Batch {
  /** A planted row may have anything. */
  account_id: unknown;
  ids: unknown[];
}

async function* listBatches(
  client: MongoClient,
  database: string,
  { collection, ofService }: AuditedKind,
): AsyncIterable<Batch> {
  const key = collection === 'accounts' ? '_id' : 'account_id';
  const rows = client.db(database).collection<Document>(collection);
  let batch: Batch = { account_id: null, ids: [] };
  for await (const row of rows.find({}, { projection: { [key]: 1 } }).sort({ [key]: 1 })) {
    const account_id = ofService === true ? null : (row[key] ?? null);
    if (account_id !== batch.account_id || batch.ids.length === ROWS_AT_ONCE) {
      if (batch.ids.length > 0) yield batch;
      batch = { account_id, ids: [] };
    }
    batch.ids.push(row._id);
  }
  if (batch.ids.length > 0) yield batch;
}

async function checkBatch(
  inSnapshot: InSnapshot,
  { noun, collection, acts, name, facts }: AuditedKind & { noun: string },
  { account_id, ids }: Batch,
): Promise<RowFinding[]> {
  return await inSnapshot(async (read) => {
    const rows = await readAll(read(collection, { _id: { $in: ids } }));
    const expected = new Map<unknown, AuditFacts | undefined>(
      rows.map((row) => [name(row), undefined]),
    );
    for await (const line of readLines(read, account_id, Object.keys(acts))) {
      const effect = acts[line.act]?.(line);
      if (effect === undefined || !expected.has(effect.name)) continue;
      const before = expected.get(effect.name);
      const changed = effect.changes && before && { ...before, ...effect.changes };
      expected.set(effect.name, effect.creates ?? changed);
    }
    return rows.flatMap((row) => {
      const id = name(row);
      const explained = expected.get(id);
      const about = { account_id: account_id === null ? null : String(account_id), id: String(id) };
      if (explained === undefined) return [{ code: `${noun}_unexplained`, ...about, fields: [] }];
      const fields = listDifferences(facts(row), explained);
      return fields.length === 0 ? [] : [{ code: `${noun}_changed`, ...about, fields }];
    });
  });
}

function readLines(read: Read, account_id: unknown, acts: readonly string[]) {
  const account = { account_id: { $eq: account_id } };
  const filter = { ...account, act: { $in: acts }, seq: { $gte: 1 } };
  return read<ChainedLine>('audit_log', filter, { sort: { seq: 1 } });
}

function listDifferences(actual: AuditFacts, expected: AuditFacts): string[] {
  return Object.keys(actual).filter((name) => toText(actual[name]) !== toText(expected[name]));
}

/** Treats absent, empty list and `false` alike. */
function toText(value: AuditFacts[string]): string {
  const isEmpty =
    value === undefined || value === false || (Array.isArray(value) && value.length === 0);
  return JSON.stringify(isEmpty ? null : value);
}
