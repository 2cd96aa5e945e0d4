import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { takeFiles } from '../../../connectors/sepa/inbox';
import { createLogger } from '../../../src/base/log';
import { openSepaBook } from '../../../src/service/banks/sepa/book';
import { hashFile } from '../../../src/statements/intake';
import { camt } from '../../support/camt';
import { useDatabase } from '../../support/database';
import { zip } from '../../support/zip';
import { IBAN, writeStatus } from './bank-files';

const database = useDatabase();
const dir = mkdtempSync(join(tmpdir(), 'inbox-'));
const clock = { now: new Date('2026-11-20T12:00:00Z') };
const list = (folder: string) => readdirSync(join(dir, folder));

afterAll(() => rmSync(dir, { recursive: true }));

async function take() {
  const book = openSepaBook(database.db);
  const log = createLogger('sepa', 'fatal');
  const growsMs = Number.NEGATIVE_INFINITY;
  await takeFiles({ book, dir, iban: IBAN, log, now: () => clock.now, growsMs });
  return book;
}

const statement = (id: string, day: string, opening: number) =>
  camt([{ id, iban: IBAN, day, opening, entries: [{ amount: 5 }] }]).toString();

test('a ZIP of statements and answers is taken as one file', async () => {
  const answer = { name: '1.xml', content: writeStatus('a'.repeat(32), '<GrpSts>ACCP</GrpSts>') };
  const later = { name: '2.xml', content: statement('S-2', '2026-11-20', 5) };
  const earlier = { name: '3.xml', content: statement('S-1', '2026-11-19', 0) };
  writeFileSync(join(dir, 'c53.zip'), zip([answer, later, earlier]));
  const { inbound } = await take();
  expect(list('processed')).toEqual(['c53.zip']);
  expect(await inbound.findOne({ name: 'c53.zip' })).toMatchObject({
    message: 'pain.002.001.10, camt.053.001.08',
    statement: {
      from_day: '2026-11-19',
      believed: [{ statement_id: 'S-1' }, { statement_id: 'S-2' }],
    },
  });
});

test('a file that ended two processes is refused, and read again when it comes again', async () => {
  const path = join(dir, 'heavy.xml');
  writeFileSync(path, statement('S-3', '2026-11-21', 10));
  const _id = await hashFile(path);
  const { readings } = openSepaBook(database.db);
  const until = new Date(clock.now.getTime() + 1_000);
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
