import { randomUUID } from 'node:crypto';
import type { Db, MongoClient } from 'mongodb';
import { connectLongReader } from '../../src/base/mongo-reads';
import { bookId, type NewEntry, operationId } from '../../src/ledger/entries';
import { ENTRY_LINES } from '../../src/ledger/entry-lines';
import { addBankAccount } from '../../src/service/banks/bank-accounts';
import { importStatements } from '../../src/service/banks/statements/import';
import { reconcileAccounts } from '../../src/service/banks/statements/reconciliation';
import { createStores, ensureIndexes } from '../../src/store';
import type { Options } from '../options';
import { buildRow, type Report } from '../report';
import type { Setting } from '../servers/config';
import { withStack } from '../servers/stack';

const IBAN = 'DE89370400440532013000';
const SOURCE = { connector: 'sandbox', livemode: false };
const DAY = '2026-01-02';
const AMOUNT = 1000;
/** About 40 MiB; a file has 64 at most. */
const FILE_LINES = 90_000;
const BATCH = 5_000;
const MIB = 1_024 * 1_024;

interface Result {
  lines: number;
  matched: number;
  seconds: number;
  /** Time of `reconciliation show`. */
  show_seconds: number;
  /** Memory of this process after the first file, after the last, and at most. */
  first_mib: number;
  last_mib: number;
  peak_mib: number;
}

/** Imports N lines in files of 90,000: of which none has an entry of ours, and then all. */
export async function runStatements(options: Options, setting: Setting): Promise<Report> {
  return await withStack(setting, { parts: 'servers' }, async ({ mongo, db, env }) => {
    // The product gives up a call after 5 seconds; what is no part of the result may take longer.
    const patient = await connectLongReader(env['MONGODB_URI'] ?? '', 'bench');
    const run = (name: string, share: number) => {
      const database = { mongo, patient, name: `${db.databaseName}_${share}` };
      return setting.progress.during(name, () => importAll(database, options, share));
    };
    const all = await run('Lines with entries', 1);
    const none = await run('Lines without entries', 0);
    await patient.close();
    const memory = ['first_mib', 'last_mib', 'peak_mib'] as const;
    const names = ['lines', 'matched', 'show_seconds', ...memory] as const;
    return {
      columns: ['all match', 'none matches'],
      rows: [
        buildRow('lines/s', all.lines / all.seconds, none.lines / none.seconds),
        ...names.map((name) => buildRow(name, all[name], none[name])),
      ],
      notes: ['first_mib, last_mib, peak_mib: memory of this process, files included'],
    };
  });
}

async function importAll(
  { mongo, patient, name }: { mongo: MongoClient; patient: MongoClient; name: string },
  { payments: count }: Options,
  share: number,
): Promise<Result> {
  const stores = createStores(mongo.db(name));
  const seeded = patient.db(name);
  await ensureIndexes(createStores(seeded));
  const deps = { mongo, stores, now: () => new Date(), audit: async () => undefined };
  const account = { ...SOURCE, iban: IBAN, currency: 'EUR' };
  await addBankAccount({ ...deps, liveConnectors: '' }, account);
  const result = { lines: 0, matched: 0, seconds: 0, first_mib: 0, last_mib: 0 };
  for (let first = 0; first < count; first += FILE_LINES) {
    const lines = Math.min(FILE_LINES, count - first);
    const ids = Array.from({ length: lines }, () => randomUUID());
    if (share > 0) await settle(seeded, ids);
    const file = buildFile(first, ids);
    const started = performance.now();
    const { statements } = await importStatements(deps, file, SOURCE);
    const [imported] = statements;
    result.seconds += (performance.now() - started) / 1_000;
    result.lines += imported?.lines ?? 0;
    result.matched += imported?.matched ?? 0;
    result.last_mib = process.memoryUsage().rss / MIB;
    if (first === 0) result.first_mib = result.last_mib;
  }
  const started = performance.now();
  await reconcileAccounts(deps, SOURCE);
  const show_seconds = (performance.now() - started) / 1_000;
  await seeded.dropDatabase();
  return { ...result, show_seconds, peak_mib: process.resourceUsage().maxRSS / 1_024 };
}

/** Stores settlements as the ledger does, without their merchants' balances. */
async function settle(db: Db, ids: readonly string[]): Promise<void> {
  const { entries, states } = createStores(db).ledger.collections;
  for (let at = 0; at < ids.length; at += BATCH) {
    const documents = ids.slice(at, at + BATCH).map((resource_id) => {
      const owner = { account_id: 'acct_bench', livemode: false, currency: 'EUR' };
      const newLines = ENTRY_LINES.payment_settled(SOURCE.connector, AMOUNT);
      const time = `${DAY}T00:00:00.000Z`;
      const entry: NewEntry = {
        kind: 'payment_settled',
        resource_id,
        ...owner,
        lines: newLines,
        at: time,
      };
      const lines = newLines.map(({ account, amount }) => ({ account, amount: Number(amount) }));
      return {
        ...{ _id: operationId(entry), book: bookId(entry), kind: entry.kind, resource_id, lines },
        ...{ at: time, written_at: time, livemode: false, currency: 'EUR' },
        ...{ bank_day: DAY, bank_amount: AMOUNT },
      };
    });
    // Waits for no disk: what is measured comes after it.
    const options = { ordered: false, writeConcern: { w: 1, j: false } };
    await entries.insertMany(documents, options);
    const awaited = documents.map(({ lines, ...row }) => ({ ...row, uncleared: SOURCE.connector }));
    await states.insertMany(awaited, options);
  }
}

function buildFile(first: number, ids: readonly string[]): Buffer {
  const money = (amount: number) => `<Amt Ccy="EUR">${(amount / 100).toFixed(2)}</Amt>`;
  const balance = (code: string, amount: number) =>
    `<Bal><Tp><CdOrPrtry><Cd>${code}</Cd></CdOrPrtry></Tp>${money(amount)}` +
    `<CdtDbtInd>CRDT</CdtDbtInd><Dt><Dt>${DAY}</Dt></Dt></Bal>`;
  const day = `<BookgDt><Dt>${DAY}</Dt></BookgDt><ValDt><Dt>${DAY}</Dt></ValDt>`;
  const code =
    '<BkTxCd><Domn><Cd>PMNT</Cd><Fmly><Cd>RCDT</Cd><SubFmlyCd>ESCT</SubFmlyCd></Fmly></Domn></BkTxCd>';
  const entries = ids.map(
    (id, at) =>
      `<Ntry>${money(AMOUNT)}<CdtDbtInd>CRDT</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts>${day}` +
      `<AcctSvcrRef>B-${first + at}</AcctSvcrRef>${code}<NtryDtls><TxDtls><Refs><EndToEndId>` +
      `${id.replaceAll('-', '')}</EndToEndId></Refs></TxDtls></NtryDtls></Ntry>\n`,
  );
  return Buffer.from(
    '<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"><BkToCstmrStmt>' +
      `<GrpHdr><MsgId>M</MsgId><CreDtTm>${DAY}T00:00:00Z</CreDtTm></GrpHdr>` +
      `<Stmt><Id>S-${first}</Id><Acct><Id><IBAN>${IBAN}</IBAN></Id><Ccy>EUR</Ccy></Acct>` +
      balance('OPBD', first * AMOUNT) +
      balance('CLBD', (first + ids.length) * AMOUNT) +
      `${entries.join('')}</Stmt></BkToCstmrStmt></Document>`,
  );
}
