import { randomUUID } from 'node:crypto';
import { createWriteStream, existsSync, mkdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { setTimeout as wait } from 'node:timers/promises';
import type { Condition, MongoClient } from 'mongodb';
import { inTransaction, isDuplicateKey } from '../../../base/mongo';
import { type Movement, sandboxIban } from '../../../domain/banks/sandbox';
import { ServiceError } from '../../../domain/errors';
import { decimalMoney } from '../../../domain/money/money';
import type { Stores } from '../../../store';
import { createMovementStore, sandboxBankDatabase } from '../sandbox';

interface StatementDocument extends StatementFacts {
  /** `open`: movements are being added. */
  state: 'open' | 'closed';
}

export interface StatementFile {
  file: string;
  statement_id: string;
  account: string;
  currency: string;
  day: string;
  /** Minor units. */
  opening: number;
  closing: number;
  lines: number;
}

export interface StatementDeps {
  mongo: MongoClient;
  /** Service database. */
  database: string;
  /** Holds `statements`. */
  dataDir: string;
  stores: Pick<Stores, 'sandboxReports'>;
  now: () => Date;
}

const STATEMENTS = 'statements';
const BATCH = 1_000;
const TAKING_ROUNDS = 50;
const TAKING_ROUND_MS = 100;
const DAY_MS = 86_400_000;
/** Longer than a transaction that books a movement. */
const DAY_ENDS_AFTER_MS = 120_000;

/**
 * Writes statements of all days that are over, missed ones included.
 * @returns their files, also existing ones
 */
export async function writeDueStatements(deps: StatementDeps): Promise<StatementFile[]> {
  const now = deps.now().getTime();
  const until = startOfDay(new Date(now - DAY_ENDS_AFTER_MS));
  return await writeStatements(deps, until, { $lt: toDay(until) });
}

/**
 * Writes statements up to now, or to the end of a past day.
 * @returns the files of that day
 * @throws ServiceError for a day that has not begun
 */
export async function writeDayStatements(
  deps: StatementDeps,
  day: string,
): Promise<StatementFile[]> {
  const now = deps.now();
  const start = new Date(`${day}T00:00:00Z`);
  if (start > now) throw new ServiceError('invalid_usage', `The day ${day} has not begun.`);
  const end = endOfDay(start);
  const { hasDue } = deps.stores.sandboxReports;
  // The bank books what was simulated; without a running bank, the wait ends after some seconds.
  for (let round = 0; round < TAKING_ROUNDS && (await hasDue()); round += 1) {
    await wait(TAKING_ROUND_MS);
  }
  return await writeStatements(deps, end < now ? end : now, day);
}

async function writeStatements(
  deps: StatementDeps,
  until: Date,
  wantedDays: Condition<string>,
): Promise<StatementFile[]> {
  const store = openStatements(deps);
  const currencies = await store.movements.distinct('currency');
  for (const currency of currencies.sort()) await makeStatements(store, currency, until);
  const files: StatementFile[] = [];
  const folder = join(deps.dataDir, 'statements');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const wanted = store.statements.find({ day: wantedDays, state: 'closed' });
  for await (const statement of wanted.sort({ day: 1, _id: 1 })) {
    const { _id, iban, currency, day, opening, credits, debits } = statement;
    const file = join(folder, `${day}-${_id}.xml`);
    // Written in one step, unless it exists; the same statement has the same bytes.
    if (!existsSync(file)) {
      const entries = store.movements.find({ currency, statement: _id });
      const next = `${file}.${randomUUID()}.next`;
      const stream = createWriteStream(next, { mode: 0o600, flush: true });
      await pipeline(writeCamt053(statement, entries.sort({ booked_at: 1, _id: 1 })), stream);
      renameSync(next, file);
    }
    files.push({
      ...{ file, statement_id: _id, account: iban, currency, day, opening },
      closing: closingBalance(statement),
      lines: credits.count + debits.count,
    });
  }
  return files;
}

type StatementStore = ReturnType<typeof openStatements>;

function openStatements({ mongo, database, now }: StatementDeps) {
  const own = mongo.db(sandboxBankDatabase(database));
  const movements = createMovementStore(own, now).collection;
  const statements = own.collection<StatementDocument>(STATEMENTS);
  return {
    mongo,
    now,
    movements,
    statements,
  };
}

/** Each statement begins where the one before it ends. */
async function makeStatements(store: StatementStore, currency: string, until: Date): Promise<void> {
  const { movements, statements } = store;
  const fresh = { currency, statement: null };
  for (;;) {
    const last = await statements.findOne({ currency }, { sort: { sequence: -1 } });
    if (last?.state === 'open') {
      while (await fillSome(store, last._id));
      continue;
    }
    const first = last === null && (await movements.findOne(fresh, { sort: { booked_at: 1 } }));
    const from = last?.to ?? (first ? startOfDay(first.booked_at) : until);
    if (from >= until) return;
    const end = endOfDay(from);
    const to = end < until ? end : until;
    const day = toDay(from);
    const isBegun = to < end && last?.day === day;
    if (isBegun && (await movements.findOne({ ...fresh, day: { $lte: day } })) === null) return;
    const sequence = (last?.sequence ?? 0) + 1;
    try {
      await statements.insertOne({
        _id: `SBX-${currency}-${String(sequence).padStart(6, '0')}`,
        iban: sandboxIban(currency),
        ...{ currency, sequence, from, to, day },
        created_at: store.now(),
        opening: last === null ? 0 : closingBalance(last),
        credits: { count: 0, sum: 0 },
        debits: { count: 0, sum: 0 },
        state: 'open',
      });
    } catch (error) {
      // Another process has begun it.
      if (!isDuplicateKey(error)) throw error;
    }
  }
}

function fillSome({ mongo, movements, statements }: StatementStore, _id: string): Promise<boolean> {
  return inTransaction(mongo, async (session) => {
    const statement = await statements.findOne({ _id, state: 'open' }, { session });
    if (statement === null) return false;
    const { currency, day } = statement;
    const rows = await movements
      .find({ currency, statement: null, day: { $lte: day } }, { session })
      .sort({ booked_at: 1 })
      .limit(BATCH)
      .toArray();
    if (rows.length === 0) {
      await statements.updateOne({ _id }, { $set: { state: 'closed' } }, { session });
      return false;
    }
    const ids = rows.map((row) => row._id);
    await movements.updateMany({ _id: { $in: ids } }, { $set: { statement: _id } }, { session });
    const [incoming, outgoing] = [true, false].map((isCredit) =>
      rows.map(({ amount, fee = 0 }) => amount - fee).filter((net) => net > 0 === isCredit),
    );
    const sum = (amounts: readonly number[] = []) =>
      amounts.reduce((total, amount) => total + Math.abs(amount), 0);
    const added = {
      'credits.count': incoming?.length ?? 0,
      'credits.sum': sum(incoming),
      'debits.count': outgoing?.length ?? 0,
      'debits.sum': sum(outgoing),
    };
    await statements.updateOne({ _id }, { $inc: added }, { session });
    return true;
  });
}

function toDay(time: Date): string {
  return time.toISOString().slice(0, 10);
}

function startOfDay(time: Date): Date {
  return new Date(Math.floor(time.getTime() / DAY_MS) * DAY_MS);
}

function endOfDay(time: Date): Date {
  return new Date(startOfDay(time).getTime() + DAY_MS);
}

/** Amounts in minor units. */
interface StatementFacts {
  _id: string;
  iban: string;
  currency: string;
  sequence: number;
  day: string;
  from: Date;
  to: Date;
  created_at: Date;
  opening: number;
  credits: Total;
  debits: Total;
}

interface Total {
  count: number;
  sum: number;
}

type Entry = Movement & { day: string };

/** ISO 20022 `camt.053.001.08`. */
async function* writeCamt053(
  statement: StatementFacts,
  entries: AsyncIterable<Entry>,
): AsyncGenerator<string> {
  const { _id, currency, created_at } = statement;
  const created = element('CreDtTm', created_at.toISOString());
  yield [
    '<?xml version="1.0" encoding="UTF-8"?>\n',
    '<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"><BkToCstmrStmt>\n',
    `${element('GrpHdr', element('MsgId', text(_id)), created)}\n<Stmt>\n`,
    element('Id', text(_id)),
    element('ElctrncSeqNb', String(statement.sequence)),
    created,
    element(
      'FrToDt',
      element('FrDtTm', statement.from.toISOString()),
      element('ToDtTm', statement.to.toISOString()),
    ),
    element(
      'Acct',
      element('Id', element('IBAN', text(statement.iban))),
      element('Ccy', text(currency)),
    ),
    '\n',
    buildBalance('OPBD', statement.opening, statement),
    buildBalance('CLBD', closingBalance(statement), statement),
    `${element(
      'TxsSummry',
      buildTotal('TtlCdtNtries', statement.credits, currency),
      buildTotal('TtlDbtNtries', statement.debits, currency),
    )}\n`,
  ].join('');
  for await (const entry of entries) yield buildEntry(entry);
  yield '</Stmt>\n</BkToCstmrStmt></Document>\n';
}

function closingBalance({ opening, credits, debits }: StatementFacts): number {
  return opening + credits.sum - debits.sum;
}

function buildBalance(
  code: 'OPBD' | 'CLBD',
  amount: number,
  { currency, day }: StatementFacts,
): string {
  const type = element('Tp', element('CdOrPrtry', element('Cd', code)));
  const date = element('Dt', element('Dt', day));
  return `${element('Bal', type, buildAmount(amount, currency), date)}\n`;
}

function buildTotal(name: string, { count, sum }: Total, currency: string): string {
  const total = element('Sum', decimalMoney(sum, currency));
  return element(name, element('NbOfNtries', String(count)), total);
}

/** A reference has at most 35 characters, so our id loses its dashes. */
function buildEntry(entry: Entry): string {
  const { resource, resource_id, amount, fee = 0, currency, bank_reference, day } = entry;
  const net = amount - fee;
  const isIncoming = resource === 'payment';
  const isReturn = isIncoming ? amount < 0 : amount > 0;
  const family = element(
    'Fmly',
    element('Cd', isIncoming ? 'RCDT' : 'ICDT'),
    element('SubFmlyCd', isReturn ? 'RRTN' : 'ESCT'),
  );
  const reference = element('AcctSvcrRef', text(bank_reference));
  const date = element('Dt', day);
  const details = element(
    'TxDtls',
    element('Refs', reference, element('EndToEndId', text(resource_id.replaceAll('-', '')))),
    buildAmount(net, currency),
    ...(fee > 0 ? buildFee(amount, fee, currency) : []),
    // No reason given.
    ...(isReturn ? [element('RtrInf', element('Rsn', element('Cd', 'MS03')))] : []),
  );
  return `${element(
    'Ntry',
    buildAmount(net, currency),
    element('Sts', element('Cd', 'BOOK')),
    element('BookgDt', date),
    element('ValDt', date),
    reference,
    element('BkTxCd', element('Domn', element('Cd', 'PMNT'), family)),
    element('NtryDtls', details),
  )}\n`;
}

/** Amount before the fee, and the fee in what the entry has. */
function buildFee(amount: number, fee: number, currency: string): string[] {
  const [gross, charge] = [amount, fee].map(
    (each) => `<Amt Ccy="${text(currency)}">${decimalMoney(each, currency)}</Amt>`,
  );
  const record = [charge ?? '', element('CdtDbtInd', 'DBIT'), element('ChrgInclInd', 'true')];
  return [
    element('AmtDtls', element('TxAmt', gross ?? '')),
    element('Chrgs', element('Rcrd', ...record)),
  ];
}

function buildAmount(amount: number, currency: string): string {
  const direction = element('CdtDbtInd', amount < 0 ? 'DBIT' : 'CRDT');
  const decimal = decimalMoney(Math.abs(amount), currency);
  return `<Amt Ccy="${text(currency)}">${decimal}</Amt>${direction}`;
}

function element(name: string, ...content: readonly string[]): string {
  return `<${name}>${content.join('')}</${name}>`;
}

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
};

/** @throws RangeError for a character that XML 1.0 does not allow */
function text(value: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: XML 1.0 has no way to write them.
  if (/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|\p{Cs}/u.test(value)) {
    throw new RangeError('A text has a character that XML does not allow.');
  }
  return value.replace(/[&<>"]/g, (character) => ESCAPES[character] ?? character);
}
