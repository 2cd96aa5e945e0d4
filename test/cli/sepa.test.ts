import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  openSepaBook,
  SEPA_CONNECTOR,
  type SepaFile,
  type SepaLine,
  sepaDatabase,
} from '../../src/service/sepa/book';
import { camt, TEST_IBAN } from '../support/camt';
import { useFixture } from '../support/fixture';
import { asOperator, CliError, commandsIn, useProvisioning } from './cli';

const service = useProvisioning();
const REFUSED = 'a'.repeat(32);
const BOOKED = 'b'.repeat(32);
const LIVE = 'd'.repeat(32);
const ROUTES = { SANDBOX_CONNECTORS: 'sepa=sepa_credit_transfer' };
const AT = new Date('2026-11-26T14:00:00Z');
const PAYOUTS = ['0', '1', '2', '3'].map(
  (digit) => `${digit.repeat(8)}-0000-4000-8000-000000000000`,
);

const openDb = () => service.mongo.db(sepaDatabase(service.db.databaseName, SEPA_CONNECTOR));
const openBook = () => openSepaBook(openDb());

function line(index: number, changes: Partial<SepaLine>): SepaLine {
  return {
    ...{ _id: PAYOUTS[index] ?? '', state: 'waiting', file_id: REFUSED, former_files: [] },
    ...{ version: 1, amount: 1_000, currency: 'EUR', method: 'sepa_credit_transfer' },
    ...{ livemode: false, added_at: AT, wait_until: null, failure: null, booked: null },
    ...{ returned: null, others: [], unreported: false, report_batch: null },
    ...changes,
  };
}

function file(_id: string, changes: Partial<SepaFile>): SepaFile {
  return {
    ...{ _id, state: 'refused', name: `pain.001.001.09-${_id}.xml`, iban: TEST_IBAN },
    ...{ execution_day: '2026-11-26', created_at: AT, payouts: 1, amount: 1_000, sha256: 'f00d' },
    ...{ bytes: null, sent_at: AT, bank_status: 'RJCT', refusal: { code: 'AM10', at: AT } },
    ...{ ended_at: AT, ...changes },
  };
}

useFixture(
  async () => {
    const { lines, files } = openBook();
    const booked = {
      ...{ amount: 1_000, currency: 'EUR', value_date: '2026-11-26', bank_reference: 'B-1' },
      ...{ references: [], code: null, at: 'then' },
    };
    await lines.insertMany([
      line(0, {}),
      line(1, { state: 'booked', booked }),
      line(2, { file_id: BOOKED, state: 'booked', booked }),
      line(3, { file_id: LIVE, livemode: true }),
    ]);
    const ended = { state: 'booked', bank_status: 'ACCP', refusal: null } as const;
    await files.insertMany([file(REFUSED, {}), file(BOOKED, ended), file(LIVE, {})]);
    return { drop: () => openDb().dropDatabase() };
  },
  ({ drop }) => drop(),
);

test('resend frees the payouts of a refused file once, except booked ones', async () => {
  expect(await service.json('sepa', 'file', 'list')).toMatchObject({
    data: [REFUSED, BOOKED, LIVE].map(() => ({ id: expect.any(String) })),
    has_more: false,
    open: { payouts: 0, amount: 0 },
  });
  expect(await service.json('sepa', 'file', 'show', REFUSED)).toMatchObject({
    ...{ id: REFUSED, state: 'refused', refusal_code: 'AM10', account: TEST_IBAN },
    data: [
      { payout_id: PAYOUTS[0], state: 'waiting' },
      { payout_id: PAYOUTS[1], state: 'booked', value_date: '2026-11-26', bank_reference: 'B-1' },
    ],
  });
  const freed = await service.json('sepa', 'file', 'resend', REFUSED);
  expect(freed).toEqual({ file_id: REFUSED, payouts: 1 });
  expect(await service.json('sepa', 'file', 'resend', REFUSED)).toMatchObject({ payouts: 0 });
  expect(await service.json('sepa', 'file', 'list')).toMatchObject({
    open: { payouts: 1, amount: 1_000 },
  });
  const acts = await service.db.collection('audit_log').find({ act: 'sepa_file.resent' }).toArray();
  expect(acts).toEqual([expect.objectContaining({ target: REFUSED, livemode: false })]);
});

test('on live a refused file is sent again by the key of an operator, with a reason', async () => {
  const resend = ['sepa', 'file', 'resend', LIVE];
  const why = ['--reason', 'Ticket 42'];
  const bare = await service.refusal(...resend, '--operator', 'ana', ...why);
  expect(bare.code).toBe('operator_key_required');
  const mia = await asOperator(service, 'mia');
  expect((await mia.refusal(...resend)).code).toBe('operator_required');
  const waiting = await openBook().lines.findOne({ file_id: LIVE });
  expect(waiting?.state).toBe('waiting');
  expect(await mia.json(...resend, ...why)).toEqual({ file_id: LIVE, payouts: 1 });
  const acts = await service.db.collection('audit_log').find({ target: LIVE }).toArray();
  expect(acts).toEqual([
    expect.objectContaining({
      ...{ act: 'sepa_file.resent', livemode: true },
      after: expect.objectContaining({ operator: 'mia', reason: 'Ticket 42' }),
    }),
  ]);
});

test.each([
  [['sepa', 'file', 'resend', BOOKED], 'sepa_file_not_refused'],
  [['sepa', 'file', 'show', 'c'.repeat(32)], 'sepa_file_not_found'],
  [['sepa', 'import'], 'setting_missing'],
])('%j is refused as %s', async (args, code) => {
  const { exit, stderr } = await service.cli(...args, '--json');
  expect([exit, CliError.parse(JSON.parse(stderr)).error.code]).toEqual([1, code]);
});

test('cut waits for the connector, and prints its files', async () => {
  const { requests } = openBook();
  const answering = setInterval(() => {
    void requests.updateMany({ files: null }, { $set: { files: [BOOKED] } });
  }, 20);
  try {
    expect(await service.json('sepa', 'cut')).toEqual({ files: [BOOKED] });
  } finally {
    clearInterval(answering);
  }
});

test('statements that were taken are imported once; a refused one goes to refused/ with its reason', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sepa-in-'));
  try {
    for (const name of ['processed', 'refused']) mkdirSync(join(folder, name));
    const { inbound } = openBook();
    const take = async (name: string, text: Buffer) => {
      writeFileSync(join(folder, 'processed', name), text);
      const statement = { from_day: '2026-11-20', imported_at: null };
      await inbound.insertOne({
        ...{ _id: name, message: 'camt.053.001.08', state: 'done', folder: 'processed', name },
        ...{ taken_at: AT, refusal: null, statement },
      });
    };
    await take('good.xml', camt([{ entries: [{ amount: 1_050, reference: 'ORDER-7' }] }]));
    await take('wrong.xml', camt([{ id: 'S-9', closing: 1, entries: [{ amount: 5 }] }]));
    const env = { ...service.env, ...ROUTES, SEPA_IN_DIR: folder, SEPA_IBAN: TEST_IBAN };
    const { cli } = commandsIn(env);
    const { stdout, stderr } = await cli('sepa', 'import', '--json');
    expect(stderr).toBe('');
    const { data } = JSON.parse(stdout);
    expect(data[0]).toMatchObject({
      refusal: null,
      statements: [{ account: TEST_IBAN, lines: 1 }],
    });
    expect(data[1].refusal.code).toMatch(/^[a-z_]+$/);
    expect(readdirSync(join(folder, 'refused'))).toEqual(['wrong.xml', 'wrong.xml.txt']);
    const reason = readFileSync(join(folder, 'refused', 'wrong.xml.txt'), 'utf8');
    expect(reason).toBe(`${data[1].refusal.code}: ${data[1].refusal.message}\n`);
    const again = async () => JSON.parse((await cli('sepa', 'import', '--json')).stdout);
    expect(await again()).toEqual({ data: [] });

    // Killed before a refused file had left its folder, and right after; the bank uses its name again.
    const { refusal } = data[1];
    for (const name of ['left.xml', 'gone.xml']) {
      await take(name, Buffer.from('<xml/>'));
      await inbound.updateOne({ _id: name }, { $set: { refusal, refused_as: name } });
    }
    renameSync(join(folder, 'processed', 'gone.xml'), join(folder, 'refused', 'gone.xml'));
    writeFileSync(join(folder, 'processed', 'gone.xml'), 'another');
    await take('next.xml', camt([{ id: 'S-10', entries: [{ amount: 5 }], opening: 1_050 }]));
    expect((await again()).data).toMatchObject([{ refusal }, { refusal }, {}]);
    expect(readdirSync(join(folder, 'processed')).toSorted()).toEqual([
      'gone.xml',
      'good.xml',
      'next.xml',
    ]);
    expect(readFileSync(join(folder, 'refused', 'gone.xml'), 'utf8')).toBe('<xml/>');
    expect(readFileSync(join(folder, 'refused', 'gone.xml.txt'), 'utf8')).toBe(reason);
    expect(await inbound.countDocuments({ folder: 'refused' })).toBe(3);
    expect(await again()).toEqual({ data: [] });

    // Two imports at once, and one whose file another had put away.
    await take('both.xml', camt([{ id: 'S-12', closing: 3, entries: [{ amount: 5 }] }]));
    await Promise.all([1, 2].map(() => cli('sepa', 'import', '--json')));
    expect(await inbound.findOne({ _id: 'both.xml' })).toMatchObject({
      ...{ folder: 'refused', name: 'both.xml' },
      refusal: { code: 'sum_mismatch' },
    });
    await take('away.xml', Buffer.from('<xml/>'));
    await inbound.updateOne({ _id: 'away.xml' }, { $set: { refusal, refused_as: 'away-2.xml' } });
    rmSync(join(folder, 'processed', 'away.xml'));
    expect((await again()).data).toMatchObject([{ refusal }]);
    expect(await again()).toEqual({ data: [] });

    await inbound.deleteOne({ _id: 'wrong.xml' });
    await take('wrong.xml', camt([{ id: 'S-11', closing: 2, entries: [{ amount: 5 }] }]));
    await again();
    expect(readFileSync(join(folder, 'refused', 'wrong.xml.txt'), 'utf8')).toBe(reason);
    const second = await inbound.findOne({ _id: 'wrong.xml' });
    expect(second).toMatchObject({ folder: 'refused', name: 'wrong-wrong.xm.xml' });
  } finally {
    rmSync(folder, { recursive: true });
  }
});
