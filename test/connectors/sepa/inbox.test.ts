import { randomUUID } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeReference } from '../../../connectors/sepa/definition';
import { type InboxDeps, takeFiles } from '../../../connectors/sepa/inbox';
import { addLine, buildReports, cancelLine } from '../../../connectors/sepa/lines';
import { createLogger } from '../../../src/base/log';
import { PAYEE_RESULTS, type PayeeResult } from '../../../src/domain/banks/callback';
import { openSepaBook, sepaDatabase, shortenId } from '../../../src/service/banks/sepa/book';
import { resendFile } from '../../../src/service/banks/sepa/files';
import { hashFile } from '../../../src/statements/intake';
import { operatorsAudit } from '../../support/audit';
import { type CamtEntry, type CamtStatement, camt } from '../../support/camt';
import { useDatabase } from '../../support/database';
import { useFixture } from '../../support/fixture';
import { createRandom } from '../../support/random';
import { zip } from '../../support/zip';
import {
  DAY,
  IBAN,
  writeNameCheck,
  writeNotification,
  writeRefusal,
  writeResults,
  writeReturn,
  writeStatus,
} from './bank-files';

const database = useDatabase();
const book = useFixture(
  async () => {
    const db = database.mongo.db(sepaDatabase(database.db.databaseName, 'sepa'));
    return { ...openSepaBook(db), drop: () => db.dropDatabase() };
  },
  ({ drop }) => drop(),
);
const dir = mkdtempSync(join(tmpdir(), 'inbox-'));
afterAll(() => rmSync(dir, { recursive: true }));
const clock = { now: new Date('2026-11-20T12:00:00Z') };
const list = (folder: string) => readdirSync(join(dir, folder));

async function take(more: Partial<InboxDeps> = {}): Promise<void> {
  const log = createLogger('sepa', 'fatal');
  const growsMs = Number.NEGATIVE_INFINITY;
  await takeFiles({ book, dir, iban: IBAN, log, now: () => clock.now, growsMs, ...more });
}

const statement = (id: string, day: string, opening: number) =>
  camt([{ id, iban: IBAN, day, opening, entries: [{ amount: 5 }] }]).toString();

test('a ZIP of statements and answers is taken as one file', async () => {
  const { file } = await send(1);
  const answer = { name: '1.xml', content: writeStatus(file, '<GrpSts>ACCP</GrpSts>') };
  const later = { name: '2.xml', content: statement('S-2', '2026-11-20', 5) };
  const earlier = { name: '3.xml', content: statement('S-1', '2026-11-19', 0) };
  writeFileSync(join(dir, 'c53.zip'), zip([answer, later, earlier]));
  await take();
  expect(list('processed')).toEqual(['c53.zip']);
  expect(await book.inbound.findOne({ name: 'c53.zip' })).toMatchObject({
    message: 'pain.002.001.10, camt.053.001.08',
    statement: {
      from_day: '2026-11-19',
      believed: [{ statement_id: 'S-1' }, { statement_id: 'S-2' }],
    },
  });
  expect(await book.files.findOne({ _id: file })).toMatchObject({ bank_status: 'ACCP' });
});

test('a file that ended two processes is refused, and read again when it comes again', async () => {
  const path = join(dir, 'heavy.xml');
  writeFileSync(path, statement('S-3', '2026-11-21', 10));
  const { readings } = book;
  const until = new Date(clock.now.getTime() + 1_000);
  const _id = await hashFile(path);
  await readings.insertOne({ _id, attempts: 2, by: 'another process', until });
  await take();
  // The other may still read it.
  expect(await readings.findOne({ _id })).toMatchObject({ attempts: 2 });
  clock.now = until;
  await take();
  expect(readFileSync(join(dir, 'refused/heavy.xml.txt'), 'utf8')).toMatch(/^file_unreadable: 2 /);
  expect(await readings.countDocuments({})).toBe(0);
  writeFileSync(path, statement('S-3', '2026-11-21', 10));
  await take();
  expect(list('processed')).toContain('heavy.xml');
});

const NOTIFICATION = { message: 'camt.054.001.08' };
const [TRANSFER, INSTANT] = ['sepa_credit_transfer', 'sepa_instant'];
const MONEY = { version: 1, amount: 1_000, currency: 'EUR', livemode: false };

/** Puts payouts into a file that leaves. */
async function send(count: number, method = TRANSFER) {
  const file = shortenId(randomUUID());
  const ids = Array.from({ length: count }, () => randomUUID());
  for (const payout_id of ids) await addLine(book, { payout_id, ...MONEY, method }, clock.now);
  await book.lines.updateMany({ _id: { $in: ids } }, { $set: { state: 'in_file', file_id: file } });
  await book.files.insertOne({
    ...{ _id: file, state: 'sent', name: `${file}.xml`, iban: IBAN, execution_day: DAY },
    ...{ created_at: clock.now, payouts: count, amount: count * MONEY.amount, sha256: null },
    ...{ bytes: null, sent_at: clock.now, bank_status: null, may_be_executed: false },
    ...{ refusal: null, ended_at: null, ...(method === INSTANT && { instant: true }) },
  });
  return { file, ids };
}

let number = 0;
/** Delivers files of the bank, one after the other. */
async function deliver(texts: readonly string[], more: Partial<InboxDeps> = {}): Promise<void> {
  for (const text of texts) {
    number += 1;
    writeFileSync(join(dir, `${number}.xml`), text);
    await take(more);
  }
}

/** Reads the states of a file and of its payouts, which have the names of their reports. */
async function look(file: string, ids: readonly string[]): Promise<string> {
  const { state, may_be_executed } = (await book.files.findOne({ _id: file })) ?? {};
  const lines = await Promise.all(ids.map((_id) => book.lines.findOne({ _id })));
  const reported = lines.map((line) =>
    line === null ? '' : [line.state, ...buildReports(line).map(({ name }) => name)].join(' '),
  );
  return `${state}${may_be_executed ? ' (held)' : ''}: ${reported.join(', ')}`;
}

const resend = async (file: string, bank_confirmed_not_executed?: true) => {
  const { mongo, stores, db } = database;
  const own = { database: db.databaseName, connector: 'sepa', now: () => clock.now };
  const deps = { mongo, stores, audit: operatorsAudit(stores), ...own };
  return await resendFile(deps, file, { bank_confirmed_not_executed }).catch(({ code }) => code);
};

const writeReason = (code: string) => `<StsRsnInf><Rsn><Cd>${code}</Cd></Rsn></StsRsnInf>`;
let messages = 0;

/** Writes what the bank says in one message, by words and `payout=STATUS/CODE`. */
function write(file: string, [a = '', b = '']: readonly string[], said: string): string {
  messages += 1;
  const message = `N-${messages}`;
  const money = { message, reference: message };
  const book = (entry: CamtEntry) =>
    camt([{ id: message, iban: IBAN, day: DAY, entries: [entry] }], NOTIFICATION)
      .toString()
      .replace('<MsgId>M-1', `<MsgId>${message}`);
  const [word = '', code = ''] = said.split(' ');
  const [amount = 0, count] = code.split('/').map(Number);
  const total = count ? `<NbOfTxs>${count}</NbOfTxs>` : '';
  const details = `<Btch><PmtInfId>${file}</PmtInfId>${total}</Btch>`;
  const sum = { amount, bank_reference: message, details };
  const written: Record<string, () => string> = {
    refused: () => writeRefusal(file, code, message),
    batch: () => {
      const batch = `<PmtInfSts>RJCT</PmtInfSts>${writeReason(code)}`;
      return writeStatus(file, '', { batch, message });
    },
    checked: () => writeNameCheck(file, { [a]: 'RVNM' }, { at: `${DAY}T08:00:00`, message }),
    booked: () => writeNotification({ id: code === 'a' ? a : b, ...money }),
    returned: () => writeNotification({ id: a, amount: 995, returned: 'AC04', ...money }),
    interbank: () => writeReturn(a, 995, 5),
    sum: () => book({ ...sum, code: 'PMNT.ICDT.ESCT' }),
    back: () => book({ ...sum, code: 'PMNT.RCDT.RRTN' }),
    reversed: () => book({ ...sum, reversal: true }),
    text: () => book({ amount, bank_reference: message, info: a }),
    either: () => book({ amount, bank_reference: `T-${file}`, info: `${a} or ${shortenId(b)}` }),
    own: () => writeNotification({ id: a, message, reference: `T-${file}` }),
  };
  const results: Record<string, [string, string?]> = {};
  const read = (name: string) => new RegExp(`${name}=(\\w+)(?:/(\\w+))?`).exec(said) ?? [];
  for (const [name, id] of Object.entries({ a, b })) {
    const [, status, reason] = read(name);
    if (status !== undefined) results[id] = [status, reason];
  }
  const [, group] = read('group');
  const status = group ? `<GrpSts>${group}</GrpSts>` : '';
  return written[word]?.() ?? writeResults(file, results, status, message);
}

const accept = (file: string) => write(file, [], 'group=ACCP');
const refuse = (file: string, code: string) => write(file, [], `refused ${code}`);
const CALLED = 'in_file called_duplicate';
const DONE = 'executed completed';
const BOOKED = 'booked completed';
const AGAIN = 'booked completed debit_reversed completed';
const WITHDRAWN = 'refused: waiting payee_verified, waiting';
const DOUBTED = 'acknowledged (held): waiting called_duplicate, in_file';

/** Delivers messages about two payouts; a resend then frees some, and more once none is executed. */
const expectShown =
  (method: string) =>
  async (said: string, shown: string, ...freed: unknown[]) => {
    const { file, ids } = await send(2, method);
    const texts = said.split('; ').map((each) => write(file, ids, each));
    await deliver(texts);
    expect(await look(file, ids)).toBe(shown);
    // A repeat in another message changes nothing.
    await deliver(texts.map((text) => text.replace('<MsgId>', '<MsgId>A')));
    expect(await look(file, ids)).toBe(shown);
    const none = 'sepa_file_not_refused';
    const expected = freed.length > 0 ? freed : [none, none];
    expect([await resend(file), await resend(file, true)]).toEqual(expected);
  };

test.each<[string, string, ...unknown[]]>([
  ['group=ACCP', 'acknowledged (held): in_file, in_file'],
  ['a=RJCT/AC04', 'sent: failed failed, in_file'],
  ['a=ACSC', 'sent: in_file, in_file'],
  ['refused AM10', 'refused: waiting, waiting', 2, 0],
  ['group=ACCP; refused AM10', 'refused (held): waiting, waiting', 'held_by_bank', 2],
  ['refused DU01', `acknowledged (held): ${CALLED}, ${CALLED}`, 'held_by_bank', 2],
  ['a=RJCT/DU04; b=RJCT/DU04', `sent (held): ${CALLED}, ${CALLED}`, 'held_by_bank', 2],
  ['a=RJCT/DU04; booked a', 'sent (held): booked completed, in_file', 'held_by_bank', 0],
  ['booked a; booked a', `sent: ${BOOKED} completed, in_file`],
  ['booked a; returned; interbank', 'sent: returned completed returned, in_file'],
  ['checked; refused DS02', WITHDRAWN, 2, 0],
  ['checked; batch DS24', WITHDRAWN, 2, 0],
  ['checked; a=RJCT/DS25 b=RJCT/DS25', WITHDRAWN, 2, 0],
  ['checked; group=RJCT a=RJCT/DS02 b=RJCT/DS02', WITHDRAWN, 2, 0],
  ['group=PART a=RJCT/DS02', 'acknowledged (held): waiting, in_file', 1, 0],
  ['group=PART a=RJCT/DS02; refused DS02', 'refused (held): waiting, waiting', 1, 1],
  ['a=RJCT/DU04; group=PART a=RJCT/DS02', DOUBTED, 'held_by_bank', 1],
  ['group=PART a=RJCT/DS02; a=RJCT/DU04', DOUBTED, 'held_by_bank', 1],
  ['sum -2000/2', `booked: ${BOOKED}, ${BOOKED}`],
  ['sum -1999/2', 'sent: in_file, in_file'],
  ['sum -2000/3', 'sent: in_file, in_file'],
  ['sum -1000', 'sent: in_file, in_file'],
  ['sum -1000; sum -1000', `booked: ${BOOKED}, ${BOOKED}`],
  ['a=RJCT/AC04; sum -1000/1', `booked: failed failed, ${BOOKED}`],
  ['sum -2000/2; back 2000/2', 'booked: returned completed returned, returned completed returned'],
  ['sum -2000; reversed 2000; sum -2000', `booked: ${AGAIN}, ${AGAIN}`],
  ['text -1000', `sent: ${BOOKED}, in_file`],
  ['text -1001; text 1000; either -1000', 'sent: in_file, in_file'],
  ['either -1000; own; either -1000', `sent: ${BOOKED}, in_file`],
])('a file of transfers of which the bank says "%s" is %s', expectShown(TRANSFER));

test.each<[string, string, ...unknown[]]>([
  ['a=ACCC b=RJCT/AB06', `booked (held): ${DONE}, failed failed`],
  ['a=ACTC; a=ACCP; a=ACSP; a=PDNG; group=ACSC', 'acknowledged (held): in_file, in_file'],
  ['a=ACSC; booked a', 'sent (held): booked completed completed, in_file'],
  ['a=ACSC b=RJCT/TM01; a=RJCT/AB05 b=ACCC', `booked (held): ${DONE} failed, ${DONE} failed`],
  ['a=ACSC; refused AM10', `sent (held): ${DONE}, in_file`],
  ['a=RJCT/AM05; a=ACCC', `sent (held): ${DONE}, in_file`, 'held_by_bank', 0],
  ['refused AM10; a=ACCC', `refused (held): ${DONE}, waiting`, 'held_by_bank', 1],
])('a file of instant payouts of which the bank says "%s" is %s', expectShown(INSTANT));

test('an instant payout is completed by its booking where the bank has no final status', async () => {
  const { file, ids } = await send(1, INSTANT);
  const [id = ''] = ids;
  const texts = ['a=ACSC', 'booked a'].map((said) => write(file, [id], said));
  await deliver(texts, { instantFinal: 'booking' });
  expect(await look(file, ids)).toBe('booked (held): booked completed');
});

test('a payout of a refused file is cancelled, unless the bank may execute it', async () => {
  for (const [before, outcome] of [
    [[], 'cancelled'],
    [[accept], 'too_late'],
  ] as const) {
    const { file, ids } = await send(1);
    const [id = ''] = ids;
    expect(await cancelLine(book, id)).toEqual({ outcome: 'too_late' });
    await deliver([...before.map((write) => write(file)), refuse(file, 'AM10')]);
    expect(await cancelLine(book, id)).toEqual({ outcome });
    await resend(file, true);
    expect(await cancelLine(book, id)).toEqual({ outcome: 'cancelled' });
  }
});

test('a payout that was called a duplicate, and withdrawn, is not cancelled', async () => {
  const { file, ids } = await send(2);
  await deliver(['a=RJCT/DU04', 'group=PART a=RJCT/DS02'].map((said) => write(file, ids, said)));
  expect(await cancelLine(book, ids[0] ?? '')).toEqual({ outcome: 'too_late' });
});

describe('a statement', () => {
  /** Opens a payment by transfer, and counts what it was credited. */
  const open = async () => {
    const [_id, opened_at] = [randomUUID(), clock.now];
    const payment = { _id, reference: makeReference(_id, 0), amount: 1_000, currency: 'EUR' };
    const reported = { opened_at, credits: [], unreported: false, report_batch: null };
    await book.payments.insertOne({ ...payment, ...reported });
    const count = async () => (await book.payments.findOne({ _id }))?.credits.length;
    return { reference: payment.reference, count };
  };
  const write = (id: string, reference: string, more: CamtStatement = {}) => {
    const entries = [{ amount: 1_000, reference, bank_reference: id }];
    return { id, iban: IBAN, day: DAY, entries, ...more };
  };

  test('settles nothing where it does not add up, is in another currency, or came otherwise', async () => {
    const [own, other] = [await open(), await open()];
    const statements = [
      write('W-1', own.reference, { closing: 1 }),
      write('W-2', own.reference, { currency: 'USD' }),
      write('W-3', other.reference, { opening: 77 }),
      write('W-3', own.reference, { opening: 77 }),
    ];
    await deliver(statements.map((each) => camt([each]).toString()));
    expect([await own.count(), await other.count()]).toEqual([0, 1]);
    const faults = await book.inbound.distinct('statement.fault.code');
    expect(faults).toEqual(['statement_conflict', 'sum_mismatch', 'wrong_currency']);
  });

  test('of its own account settles in a file of several, whose others may come again', async () => {
    const [own, foreign] = [await open(), await open()];
    const day = '2026-10-06';
    const other = { day, iban: 'DE89370400440532013000' };
    const both = [write('M-1', own.reference, { day }), write('M-2', foreign.reference, other)];
    const alone = camt([write('M-3', foreign.reference, other)]).toString();
    await deliver([camt(both).toString(), alone]);
    expect([await own.count(), await foreign.count()]).toEqual([1, 0]);
    const name = `${number}.xml`;
    expect([list('processed'), list('other')]).toEqual([
      expect.arrayContaining([`${number - 1}.xml`]),
      [name],
    ]);
    const imported = { 'statement.imported_at': clock.now };
    await book.inbound.updateOne({ name }, { $set: imported });
    await deliver([alone]);
    expect(list('other')).toHaveLength(2);
    const all = { ...imported, 'statement.set_aside': [] };
    await book.inbound.updateOne({ name: `${number}.xml` }, { $set: all });
    await deliver([alone]);
    const refused = readFileSync(join(dir, `refused/${number}.xml.txt`), 'utf8');
    expect(refused).toMatch(/^file_repeated: /);
  });
});

test('a file that answers no file of ours is refused', async () => {
  const texts = [accept('f'.repeat(32)), writeReturn(randomUUID(), 1, 0)];
  await deliver(texts);
  const refused = await book.inbound.find({ 'refusal.code': 'file_foreign' }).toArray();
  expect(refused.map(({ folder }) => folder)).toEqual(['refused', 'refused']);
});

const CODES = { match: 'RCVC', close_match: 'RVMC', no_match: 'RVNM', not_possible: 'RVNA' };
const seed = Number(process.env['NAME_CHECK_SEED'] ?? Date.now() % 1_000_000);
test(`a payout has the newest result of its name check, whatever comes first (seed ${seed})`, async () => {
  const random = createRandom(seed);
  for (let round = 0; round < 20; round += 1) {
    const { file, ids } = await send(random.integer(1, 3));
    const newest = new Map<string, PayeeResult>();
    let waits = false;
    const answers: string[] = [];
    for (let minute = 1; minute <= random.integer(1, 4); minute += 1) {
      const listed = ids.filter(() => random.chance(0.7));
      const checked = listed.map((id) => [id, random.pick([...PAYEE_RESULTS, null])] as const);
      const level = random.pick(['group', 'payments', 'none'] as const);
      const isOfAll = level !== 'none' && listed.length > 0;
      for (const [id, result] of checked) if (result !== null) newest.set(id, result);
      const others = isOfAll ? ids.filter((id) => !listed.includes(id)) : [];
      for (const id of others) newest.set(id, 'match');
      waits ||= isOfAll || checked.some(([, result]) => result !== null);
      const statuses = checked.map(([id, result]) => [id, result ? CODES[result] : 'RVNC']);
      answers.push(
        writeNameCheck(file, Object.fromEntries(statuses), {
          ...{ version: random.pick(['03', '10', '12', '15']), at: `${DAY}T08:0${minute}:00` },
          ...{ message: `R-${round}-${minute}`, ...(isOfAll && { [level]: 'RCVM' }) },
        }),
      );
    }
    const shuffled = answers.toSorted(() => random.integer(0, 2) - 1);
    await deliver([...shuffled, random.pick(answers).replace('R-', 'AGAIN-')]);
    for (const id of ids) {
      const { verification } = (await book.lines.findOne({ _id: id })) ?? {};
      expect(verification?.result).toBe(newest.get(id));
    }
    const isAwaited = async () =>
      (await book.files.findOne({ _id: file }))?.awaiting_release !== undefined;
    expect(await isAwaited()).toBe(waits);
    await deliver([refuse(file, 'DS02')]);
    expect(await isAwaited()).toBe(false);
    expect(await resend(file)).toBe(ids.length);
  }
});
