import { randomUUID } from 'node:crypto';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inTransaction } from '../../src/base/mongo';
import { sandboxIban } from '../../src/domain/banks/sandbox';
import { ENTRY_LINES } from '../../src/ledger/entry-lines';
import { addBankAccount, type NewBankAccount } from '../../src/service/banks/bank-accounts';
import { createMovementStore, sandboxBankDatabase } from '../../src/service/banks/sandbox';
import {
  openSepaBook,
  SEPA_CONNECTOR,
  type SepaFile,
  type SepaLine,
  sepaDatabase,
} from '../../src/service/banks/sepa/book';
import { FILE_BYTES_MAX } from '../../src/statements/intake';
import { createMetricStore } from '../../src/store/metrics';
import { inOneDay } from '../api/window';
import { type CamtStatement, camt, TEST_DAY, TEST_IBAN } from '../support/camt';
import { dumpDatabase } from '../support/dump';
import { retryUntilDone } from '../support/eventually';
import { useFixture } from '../support/fixture';
import { asOperator, commandsIn, useProvisioning } from './cli';

const service = useProvisioning();
const OTHER_IBAN = 'DE89370400440532013000';

describe('bank-account', () => {
  const routes = { liveConnectors: 'acme=ideal', sandboxConnectors: 'test-acme=ideal' };
  const add = (change: Partial<NewBankAccount> = {}) => {
    const account = { connector: 'sandbox', livemode: false, iban: OTHER_IBAN, currency: 'EUR' };
    return addBankAccount({ ...service.deps, ...routes }, { ...account, ...change });
  };

  test('add registers an account once, and list shows it', async () => {
    const { json } = commandsIn({ ...service.env, LIVE_CONNECTORS: routes.liveConnectors });
    const iban = '\ufeffde89\u00a03704-0044\u200b0532 0130–00';
    const command = 'bank-account add --connector sandbox --env sandbox --currency EUR --iban';
    const added = Object(await json(command, iban));
    expect(added).toEqual({
      bank_account_id: expect.stringMatching(/^ba_[0-9a-f-]{36}$/),
      ...{ connector: 'sandbox', env: 'sandbox', account: OTHER_IBAN, iban: OTHER_IBAN },
      ...{ currency: 'EUR', created_at: expect.any(String), closing: null },
      ...{ numbering: 'none', open_days: 5, tolerance: 0 },
    });
    const again = { _id: added.bank_account_id };
    expect(await Promise.all([add(), add()])).toMatchObject([again, again]);
    const dollars = await add({ connector: 'acme', livemode: true, currency: 'USD' });
    const tested = await add({ connector: 'test-acme' });
    const rows = [dollars, tested].map(({ _id }) => ({ bank_account_id: _id }));
    expect(await json('bank-account', 'list')).toMatchObject({ data: [added, ...rows] });
    const lines = await service.stores.auditLog.list({ act: 'bank_account.added', limit: 9 });
    expect(lines).toHaveLength(3);
  });

  test.each<[Partial<NewBankAccount>, string, RegExp]>([
    [{ iban: 'DE88370400440532013000' }, 'iban_invalid', /check digits/],
    [{ iban: '' }, 'iban_invalid', /check digits/],
    [{ connector: 'other', livemode: true }, 'connector_unknown', /no connector other/],
    [{ connector: 'test-acme', livemode: true }, 'connector_unknown', /a test system, which holds/],
    [{ livemode: true }, 'connector_unknown', /nothing on live/],
    [{ connector: 'a.b' }, 'connector_name_invalid', /"a.b"/],
  ])('add refuses %j with a message', async (change, code, message) => {
    const refusal = { code, message: expect.stringMatching(message) };
    await expect(add(change)).rejects.toMatchObject(refusal);
  });
});

// Which files are written is in test/stack/sandbox-statements.test.ts.
test(
  'sandbox statement writes the files of a day, and registers their accounts',
  inOneDay(async () => {
    const { json, cli, refusal, mongo, db, folder } = service;
    const command = 'sandbox statement';
    expect(await json(command)).toEqual({ data: [] });
    const day = new Date().toISOString().slice(0, 10);
    const bank = mongo.db(sandboxBankDatabase(db.databaseName));
    const movements = createMovementStore(bank, () => new Date());
    await retryUntilDone(() => movements.ensureIndexes());
    const about = { resource: 'payment', resource_id: 'p', name: 'settled' } as const;
    const money = { decision: 'd', amount: 1_234, currency: 'CHF', bank_reference: 'B-1' };
    await inTransaction(mongo, (session) => movements.book({ ...about, ...money }, session));
    const account = { iban: sandboxIban('CHF'), currency: 'CHF' };
    const statement = {
      ...{ file: join(folder, 'statements', `${day}-SBX-CHF-000001.xml`) },
      ...{ statement_id: 'SBX-CHF-000001', account: account.iban, currency: 'CHF', day },
      ...{ opening: 0, closing: 1_234, lines: 1 },
    };
    for (const each of [command, `${command} --date ${day}`]) {
      expect(await json(each)).toEqual({ data: [statement] });
    }
    expect(readFileSync(statement.file, 'utf8')).toContain('<Amt Ccy="CHF">12.34</Amt>');
    const { stdout } = await cli(command);
    expect(stdout).toContain(`${statement.file}  ${statement.account}  1 line  CHF`);
    const { data } = Object(await json('bank-account list'));
    expect(data).toContainEqual(expect.objectContaining({ ...account, env: 'sandbox' }));
    expect((await refusal(`${command} --date 2999-01-01`)).code).toBe('invalid_usage');
    await bank.dropDatabase();
  }),
);

// What an import does is in test/statements.
describe('statement', () => {
  const SOURCE = '--connector sandbox --env sandbox';
  const OF_ACCOUNT = `${SOURCE} --account ${TEST_IBAN.toLowerCase()}`;
  const statement = (line: string) => service.json(`statement ${line}`);
  const importFrom = (path: string) => statement(`import ${path} ${SOURCE}`);
  const refuseImport = (path: string) => service.refusal(`statement import ${path} ${SOURCE}`);
  const addAccount = async (iban: string) =>
    Object(await service.json(`bank-account add ${SOURCE} --currency EUR --iban ${iban}`));
  const showReconciliation = (more = '') =>
    service.json(`reconciliation show ${OF_ACCOUNT} ${more}`);

  function write(name: string, content: Buffer | string): string {
    const path = join(service.folder, name);
    writeFileSync(path, content);
    return path;
  }

  beforeAll(() => addAccount(TEST_IBAN));

  test('is imported once, shown, and its open line matched and unmatched', async () => {
    const entries = [
      { amount: 1_050, reference: 'ORDER-7', bank_reference: 'B-1' },
      { amount: -5, code: 'PMNT.MDOP.CHRG' },
    ];
    const path = write('s-1.xml', camt([{ entries }]));
    const row = {
      ...{ id: expect.stringMatching(/^st_/), statement_id: 'S-1', kind: 'statement' },
      ...{ account: TEST_IBAN, day: TEST_DAY, lines: 2, matched: 0, booked: 1, open: 1 },
    };
    const imported = await importFrom(path);
    expect(imported).toEqual({ ...row, already_imported: false });
    expect(await importFrom(path)).toEqual({ ...row, already_imported: true });
    const { id } = Object(imported);
    const line = {
      ...{ id: `${id}:1`, account: TEST_IBAN, day: TEST_DAY, value_date: TEST_DAY, amount: 1_050 },
      ...{ currency: 'EUR', reference: 'ORDER-7', bank_reference: 'B-1', kind: 'PMNT.RCDT.ESCT' },
      ...{ fee: 0, status: 'open', unmatched: 1_050, entries: [], different: null, owner: null },
      age_days: expect.any(Number),
    };
    const shown = { id, statement_id: 'S-1', opening: 0, closing: 1_045, closed: false, lines: 2 };
    const open = { ...shown, data: [line], has_more: false };
    expect(await statement('show S-1 --status open')).toMatchObject(open);
    expect(await statement(`list ${SOURCE}`)).toMatchObject({ data: [shown] });
    expect(await showReconciliation()).toEqual({
      ...{ account: TEST_IBAN, currency: 'EUR', day: TEST_DAY, closed: false, matched: 0 },
      ...{ opening: 0, closing: 1_045, ours_only: [], theirs_only: [line], different: [] },
      ...{ findings: [], has_more: false },
    });
    const { stdout } = await service.cli(`reconciliation show ${OF_ACCOUNT}`);
    expect(stdout).toMatch(/Only on the statement:\nLINE .*\n.*€10\.50 +ORDER-7 +B-1 +open/);
    expect(await statement(`assign ${line.id} --owner mia`)).toEqual({ ...line, owner: 'mia' });
    const { code } = await service.refusal(`statement match ${line.id}`);
    expect(code).toBe('amounts_differ');
    const booked = { status: 'booked', unmatched: 0 };
    const match = `match ${line.id} --difference-to expense.bank_fees`;
    expect(await statement(match)).toMatchObject(booked);
    expect(await showReconciliation()).toMatchObject({ closed: true });
    expect(await statement(`unmatch ${line.id}`)).toMatchObject({ status: 'open' });
    const unmatched = { closed: false, theirs_only: [{ id: line.id }] };
    expect(await showReconciliation(`--date ${TEST_DAY}`)).toMatchObject(unmatched);
  });

  test('that does not add up needs an operator until it is acknowledged', async () => {
    const wrong = write('s-2.xml', camt([{ id: 'S-2', opening: 1_045, closing: 2_000 }]));
    const message = expect.stringContaining('€9.55 is missing');
    expect(await refuseImport(wrong)).toEqual({ code: 'sum_mismatch', message });
    const list = async (options = '') => {
      const { data } = Object(await service.json(`attention list ${options}`));
      return data.filter(({ reason }: { reason: string }) => reason !== 'lines_open');
    };
    const [row] = await list();
    expect(row).toMatchObject({
      ...{ id: expect.stringMatching(/^bank_account:ba_.*:\d+$/), resource: 'bank_account' },
      ...{ reason: 'sum_mismatch', amount: 955, currency: 'EUR', acknowledged: false },
    });
    const { id } = row;
    const done = { id, resource: 'bank_account', reason: 'sum_mismatch', acknowledged: true };
    for (const _repeat of [1, 2]) {
      const acknowledge = `attention acknowledge ${id} --operator mia --reason "Ticket 42"`;
      expect(await service.json(acknowledge)).toMatchObject(done);
    }
    expect(await list()).toEqual([]);
    expect(await list('--all')).toMatchObject([{ id, acknowledged: true }]);
    await refuseImport(wrong);
    const kind = { message: 'camt.054.001.08' } as const;
    const notified = camt([{ id: 'N-2', entries: [{ amount: -1 }] }], kind);
    await importFrom(write('n-2.xml', notified));
    expect(await list()).toMatchObject([{ reason: 'sum_mismatch' }]);
    const { stuck, statement_lines } = await createMetricStore(service.db).read(new Date());
    const about = { resource: 'bank_account', livemode: 'false', reason: 'sum_mismatch' };
    expect(stuck).toContainEqual({ ...about, count: 1 });
    const open = { connector: 'sandbox', livemode: 'false', count: 1, day: TEST_DAY };
    expect(statement_lines).toEqual([open]);
    const right = camt([{ id: 'S-2', opening: 1_045, entries: [{ amount: 955 }] }]);
    await importFrom(write('s-2b.xml', right));
    expect(await list()).toEqual([]);
    const two = [21, 22].map((day) => ({ id: `S-${day}`, opening: 2_000, day: `2026-11-${day}` }));
    const both = { data: [{ statement_id: 'S-21' }, { statement_id: 'S-22' }] };
    expect(await importFrom(write('two.xml', camt(two)))).toMatchObject(both);
  });

  test('of an account without IBAN is imported by the id that the bank gives it', async () => {
    const add = `bank-account add ${SOURCE} --currency EUR --account-id`;
    for (const [id, code] of [
      [`7 --iban ${OTHER_IBAN}`, 'invalid_usage'],
      ['x'.repeat(35), 'account_id_invalid'],
    ] as const) {
      expect((await service.refusal(`${add} ${id}`)).code).toBe(code);
    }
    const neither = `bank-account add ${SOURCE} --currency EUR`;
    expect((await service.refusal(neither)).code).toBe('invalid_usage');
    const account = '4711-ab';
    expect(await service.json(`${add} ${account}`)).toMatchObject({ account, iban: null });
    const text = camt([{ id: 'O-1', entries: [{ amount: 5 }] }]).toString();
    const other = text.replace(/<IBAN>.*<\/IBAN>/, `<Othr><Id>${account}</Id></Othr>`);
    const row = { account, lines: 1 };
    expect(await importFrom(write('other.xml', other))).toMatchObject(row);
    const own = `${SOURCE} --account ${account}`;
    expect(await statement(`list ${own}`)).toMatchObject({ data: [{ account }] });
    const shown = await service.json(`reconciliation show ${own}`);
    expect(shown).toMatchObject({ account, theirs_only: [{ account }] });
  });

  // What such lines do is in test/statements.
  test('behind a missing one is shown as announced until that comes', async () => {
    const iban = 'IT60X0542811101000000123456';
    await addAccount(iban);
    const [first = '', second = '', third = ''] = [1, 2, 3].map((n) => {
      const about = { id: `G-${n}`, iban, day: `2026-11-2${n}`, opening: (n - 1) * 2 };
      return write(`g-${n}.xml`, camt([{ ...about, entries: [{ amount: 2 }] }]));
    });
    await importFrom(first);
    expect((await refuseImport(third)).code).toBe('statement_gap');
    const announced = { kind: 'notification', behind_gap: 'open', data: [{ status: 'announced' }] };
    expect(await statement('show G-3')).toMatchObject(announced);
    for (const path of [second, third]) await importFrom(path);
    const imported = { kind: 'statement', data: [{ status: 'open' }] };
    expect(await statement('show G-3')).toMatchObject(imported);
    const { data } = Object(await statement(`list ${SOURCE} --account ${iban}`));
    expect(data).toContainEqual(expect.objectContaining({ behind_gap: 'filled' }));
  });

  test('is checked without a trace, as its import does after that', async () => {
    const iban = 'GB33BUKB20201555555555';
    await addAccount(iban);
    const posted = { resource_id: randomUUID(), livemode: false, currency: 'EUR' };
    const entry = {
      ...{ account_id: 'acct_checked', ...posted, value_date: TEST_DAY },
      kind: 'payment_settled',
      lines: ENTRY_LINES.payment_settled('sandbox', 700),
      at: `${TEST_DAY}T10:00:00.000Z`,
    } as const;
    const { ledger } = service.stores;
    await inTransaction(service.mongo, (session) => ledger.post(entry, session));
    const entries = [
      { amount: 700, reference: posted.resource_id.replaceAll('-', '') },
      { amount: -5, code: 'PMNT.MDOP.CHRG' },
      { amount: 9, bank_reference: 'R' },
      { amount: 9, bank_reference: 'R' },
    ];
    const good = { id: 'C-1', iban, entries };
    const gap = { id: 'C-2', iban, opening: 1, day: '2026-11-21' };
    const unknown = { id: 'C-3', iban: 'NL91ABNA0417164300' };
    const check = async (name: string, ...statements: CamtStatement[]) => {
      const before = await dumpDatabase(service.db);
      const path = write(name, camt(statements));
      const outcome = await service.cli(`--json statement check ${path} ${SOURCE}`);
      expect(await dumpDatabase(service.db)).toEqual(before);
      const { error } = outcome.exit === 0 ? { error: null } : JSON.parse(outcome.stderr);
      return { path, shown: outcome.stdout && JSON.parse(outcome.stdout), code: error?.code };
    };
    const row = {
      ...{ statement_id: 'C-1', account: iban, day: TEST_DAY, lines: 4, open: 2 },
      ...{ would_match: 1, would_book: 1, would_refuse: null, already_imported: false },
    };
    const first = await check('c-1.xml', good);
    expect(first).toMatchObject({ shown: row, code: undefined });
    const set_aside = [{ account: unknown.iban, statement_id: 'C-3' }];
    const both = await check('c-3.xml', good, unknown);
    expect(both).toMatchObject({ shown: { data: [row], set_aside }, code: undefined });
    const would_refuse = { code: 'statement_gap', message: expect.stringContaining('€0.01') };
    const late = await check('c-2.xml', good, gap);
    expect(late.code).toBe('statement_gap');
    expect(late.shown.data).toMatchObject([{ would_refuse }, { would_refuse, would_match: 0 }]);
    expect(await check('c-4.xml', unknown)).toMatchObject({ code: 'bank_account_unknown' });
    const imported = await importFrom(first.path);
    expect(imported).toMatchObject({ matched: 1, booked: 1, open: 2 });
    const nothing = { would_match: 0, would_book: 0, open: 0, already_imported: true };
    expect(await check('c-5.xml', good)).toMatchObject({ shown: nothing, code: undefined });
    const other = { ...good, entries: entries.slice(1) };
    const conflict = { code: 'statement_conflict' };
    const shown = { would_refuse: conflict };
    expect(await check('c-6.xml', other)).toMatchObject({ ...conflict, shown });
  });

  test('in a file that is missing or too large, and of an unregistered account, is refused', async () => {
    const [missing, large] = [join(service.folder, 'none.xml'), write('large.xml', '<')];
    truncateSync(large, FILE_BYTES_MAX + 1);
    for (const [command, code] of [
      [`statement import ${missing}`, 'file_not_found'],
      [`statement import ${large}`, 'file_too_large'],
      ['reconciliation show --account GB82WEST12345698765432', 'bank_account_unknown'],
    ]) {
      expect((await service.refusal(`${command} ${SOURCE}`)).code).toBe(code);
    }
  });

  // What is read in which way is in test/statements and test/connectors/sepa/unit.
  test('is of an account with settings, and is not abandoned once it is complete', async () => {
    const iban = 'FR1420041010050500013M02606';
    const { bank_account_id } = await addAccount(iban);
    const update = `bank-account update ${bank_account_id}`;
    const updated = await service.json(`${update} --numbering yearly --open-days 3 --tolerance 50`);
    const shown = { numbering: 'yearly', open_days: 3, tolerance: 50 };
    expect(updated).toMatchObject({ bank_account_id, ...shown });
    expect((await service.refusal(update)).code).toBe('invalid_usage');
    const path = write('complete.xml', camt([{ id: '2026-326', iban, entries: [{ amount: 1 }] }]));
    const { id } = Object(await importFrom(path));
    const { code } = await service.refusal(`statement abandon ${id} --reason x`);
    expect(code).toBe('statement_complete');
  });
});

describe('sepa', () => {
  const [REFUSED, LIVE, ACCEPTED] = ['a'.repeat(32), 'd'.repeat(32), 'e'.repeat(32)] as const;
  const PAYOUTS = ['0', '1', '2', '3'].map(
    (digit) => `${digit.repeat(8)}-0000-4000-8000-000000000000`,
  );
  const AT = new Date('2026-11-26T14:00:00Z');
  const openDb = () => service.mongo.db(sepaDatabase(service.db.databaseName, SEPA_CONNECTOR));
  const openBook = () => openSepaBook(openDb());
  const fileCommand = (line: string) => service.json(`sepa file ${line}`);
  const listAudited = (act: string, target: string) =>
    service.db
      .collection('audit_log')
      .find({ act: `sepa_file.${act}`, target })
      .toArray();

  function buildLine(index: number, changes: Partial<SepaLine>): SepaLine {
    return {
      ...{ _id: PAYOUTS[index] ?? '', state: 'waiting', file_id: REFUSED, former_files: [] },
      ...{ version: 1, amount: 1_000, currency: 'EUR', method: 'sepa_credit_transfer' },
      ...{ livemode: false, added_at: AT, wait_until: null, failure: null, booked: null },
      ...{ duplicate: null, returned: null, others: [], unreported: false, report_batch: null },
      ...changes,
    };
  }

  function buildFile(_id: string, changes: Partial<SepaFile>): SepaFile {
    return {
      ...{ _id, state: 'refused', name: `pain.001.001.09-${_id}.xml`, iban: TEST_IBAN },
      ...{ execution_day: '2026-11-26', created_at: AT, payouts: 1, amount: 1_000 },
      ...{ sha256: 'f00d', bytes: null, sent_at: AT, bank_status: 'RJCT' },
      ...{ may_be_executed: false, refusal: { code: 'AM10', at: AT }, ended_at: AT, ...changes },
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
        buildLine(0, {}),
        buildLine(1, { state: 'booked', booked }),
        buildLine(2, { file_id: LIVE, livemode: true }),
        buildLine(3, { file_id: ACCEPTED, livemode: true, amount: 100_001 }),
      ]);
      await files.insertMany([
        buildFile(REFUSED, {}),
        buildFile(LIVE, {}),
        buildFile(ACCEPTED, { may_be_executed: true }),
      ]);
      return { drop: () => openDb().dropDatabase() };
    },
    ({ drop }) => drop(),
  );

  // Which files and payouts a resend takes is in test/connectors/sepa/files.test.ts.
  test('resend frees the payouts of a refused file once, except booked ones', async () => {
    const list = { data: [{}, {}, {}], has_more: false, open: { payouts: 0, amount: 0 } };
    expect(await fileCommand('list')).toMatchObject(list);
    const booked = { state: 'booked', value_date: '2026-11-26', bank_reference: 'B-1' };
    expect(await fileCommand(`show ${REFUSED}`)).toMatchObject({
      ...{ id: REFUSED, state: 'refused', refusal_code: 'AM10', account: TEST_IBAN },
      data: [
        { payout_id: PAYOUTS[0], state: 'waiting' },
        { payout_id: PAYOUTS[1], ...booked },
      ],
    });
    for (const payouts of [1, 0]) {
      expect(await fileCommand(`resend ${REFUSED}`)).toEqual({ file_id: REFUSED, payouts });
    }
    expect(await fileCommand('list')).toMatchObject({ open: { payouts: 1, amount: 1_000 } });
    expect(await listAudited('resent', REFUSED)).toMatchObject([{ livemode: false }]);
  });

  test('resend needs a key and a reason on live, and above the limit an approval', async () => {
    const resend = 'sepa file resend';
    const why = ['--reason', 'Ticket 42'];
    const bare = await service.refusal(`${resend} ${LIVE} --operator ana`, ...why);
    expect(bare.code).toBe('operator_key_required');
    const lin = await asOperator(service, 'lin');
    const bo = await asOperator(service, 'bo', 'approver');
    expect((await lin.refusal(`${resend} ${LIVE}`)).code).toBe('operator_required');
    const readState = async (file_id: string) =>
      (await openBook().lines.findOne({ file_id }))?.state;
    expect(await readState(LIVE)).toBe('waiting');
    expect(await lin.json(`${resend} ${LIVE}`, ...why)).toEqual({ file_id: LIVE, payouts: 1 });
    const after = { operator: 'lin', reason: 'Ticket 42' };
    const actor = { operator: 'lin' };
    expect(await listAudited('resent', LIVE)).toMatchObject([{ livemode: true, actor, after }]);

    const confirmed = [`${resend} ${ACCEPTED} --bank-confirmed-not-executed`, ...why];
    const required = await lin.json(...confirmed);
    const { status, approval_id } = Object(required);
    expect(status).toBe('approval_required');
    expect(await lin.json(...confirmed)).toEqual(required);
    expect(await readState(ACCEPTED)).toBe('waiting');
    const approve = `approval approve ${approval_id} --reason "I have called the bank"`;
    const act = { act: 'sepa_file.resend', operation_id: ACCEPTED, amount: 100_001 };
    expect(await bo.json(approve)).toMatchObject({ state: 'done', ...act });
    expect(await bo.json(approve)).toMatchObject({ state: 'done' });
    const line = await openBook().lines.findOne({ former_files: ACCEPTED });
    expect(line).toMatchObject({ state: 'open', file_id: null });
    const approved = { ...after, approved_by: 'bo', bank_confirmed_not_executed: true };
    const audited = await listAudited('resent', ACCEPTED);
    expect(audited).toMatchObject([{ livemode: true, after: approved }]);
  });

  test('resend frees under an approval what was requested, and no more', async () => {
    const file = 'b'.repeat(32);
    const { files, lines } = openBook();
    const about = { file_id: file, livemode: true, amount: 100_001 };
    const duplicate = { code: 'AM05', at: 'then' };
    const changes = { state: 'acknowledged', may_be_executed: true, refusal: null } as const;
    await files.insertOne(buildFile(file, { ...changes, ended_at: null }));
    await lines.insertMany([
      buildLine(0, { _id: 'withdrawn', ...about, withdrawn: 'DS02' }),
      buildLine(0, { _id: 'doubted', ...about, withdrawn: 'DS02', duplicate }),
      buildLine(0, { _id: 'duplicate', ...about, state: 'in_file', duplicate }),
    ]);
    const dan = await asOperator(service, 'dan');
    const eva = await asOperator(service, 'eva', 'approver');
    const resend = [`sepa file resend ${file}`, '--reason', 'Ticket 44'] as const;
    const confirmed = [
      `${resend[0]} --bank-confirmed-not-executed`,
      '--reason',
      'Ticket 44',
    ] as const;
    const approve = (required: unknown) =>
      `approval approve ${Object(required).approval_id} --reason "I have called the bank"`;
    const listFreed = async () =>
      (await lines.find({ former_files: file }).toArray()).map(({ _id }) => _id);
    expect(await eva.json(approve(await dan.json(...resend)))).toMatchObject({ state: 'done' });
    expect(await listFreed()).toEqual(['withdrawn']);
    expect((await dan.refusal(...resend)).code).toBe('held_by_bank');
    const required = await dan.json(...confirmed);
    await lines.insertOne(buildLine(0, { _id: 'later', ...about, state: 'in_file', duplicate }));
    expect((await eva.refusal(approve(required))).code).toBe('approval_differs');
    expect(await listFreed()).toEqual(['withdrawn']);
    expect(await eva.json(approve(await dan.json(...confirmed)))).toMatchObject({ state: 'done' });
    expect(await listFreed()).toHaveLength(4);
  });

  test('released notes on live who has released a file at the bank, once', async () => {
    const file = 'f'.repeat(32);
    const awaiting_release = { since: AT, checked_at: AT.toISOString() };
    const { files, lines } = openBook();
    await files.insertOne(buildFile(file, { state: 'sent', refusal: null, awaiting_release }));
    const about = { state: 'in_file', file_id: file, livemode: true } as const;
    await lines.insertOne(buildLine(4, { _id: 'fifth', ...about }));
    const released = 'sepa file released';
    const why = ['--reason', 'Ticket 43'];
    const cid = await asOperator(service, 'cid');
    expect((await cid.refusal(`${released} ${file}`)).code).toBe('operator_required');
    const other = await cid.refusal(`${released} ${LIVE}`, ...why);
    expect(other.code).toBe('sepa_file_not_awaited');
    for (const changed of [true, false]) {
      expect(await cid.json(`${released} ${file}`, ...why)).toEqual({ file_id: file, changed });
    }
    const after = { operator: 'cid', reason: 'Ticket 43' };
    const shown = { awaiting_release: null, released: after };
    expect(await fileCommand(`show ${file}`)).toMatchObject(shown);
    const actor = { operator: 'cid' };
    expect(await listAudited('released', file)).toMatchObject([{ livemode: true, actor, after }]);
  });

  test('cut waits for the connector, and prints its files', async () => {
    const { requests } = openBook();
    const answering = setInterval(() => {
      void requests.updateMany({ files: null }, { $set: { files: [REFUSED] } });
    }, 20);
    const cut = service.json('sepa cut').finally(() => clearInterval(answering));
    expect(await cut).toEqual({ files: [REFUSED] });
    expect((await service.refusal('sepa import')).code).toBe('setting_missing');
    for (const name of ['', 'x.y', 'a'.repeat(65)]) {
      const { code } = await service.refusal('sepa inbound list --connector', name);
      expect(code).toBe('invalid_usage');
    }
  });

  describe('import', () => {
    /** Folder of the bank's files. */
    const inbox = useFixture(
      async () => {
        const folder = mkdtempSync(join(tmpdir(), 'sepa-in-'));
        for (const name of ['processed', 'refused']) mkdirSync(join(folder, name));
        return { folder };
      },
      ({ folder }) => rmSync(folder, { recursive: true }),
    );
    const processed = (name: string) => join(inbox.folder, 'processed', name);
    const readRefused = (name: string) => readFileSync(join(inbox.folder, 'refused', name), 'utf8');
    const inbound = () => openBook().inbound;

    /** Takes a file as the connector does; it may have refused it before it was killed. */
    async function take(name: string, text: Buffer | string, changes: object = {}) {
      writeFileSync(processed(name), text);
      const statement = { from_day: '2026-11-20', imported_at: null, set_aside: [] };
      await inbound().insertOne({
        ...{ _id: name, message: 'camt.053.001.08', state: 'done', folder: 'processed', name },
        ...{ taken_at: AT, refusal: null, statement, ...changes },
      });
    }
    async function importTaken() {
      const routes = { SANDBOX_CONNECTORS: 'sepa=sepa_credit_transfer' };
      const env = { ...service.env, ...routes, SEPA_IN_DIR: inbox.folder, SEPA_IBAN: TEST_IBAN };
      return Object(await commandsIn(env).json('sepa import')).data;
    }
    const wrong = (id: string, closing: number) =>
      camt([{ id, closing, entries: [{ amount: 5 }] }]);

    test('takes a statement once, and puts a refused one into refused/ with its reason', async () => {
      await take('good.xml', camt([{ entries: [{ amount: 1_050, reference: 'ORDER-7' }] }]));
      await take('wrong.xml', wrong('S-9', 1));
      const [good, { refusal }] = await importTaken();
      const statements = [{ account: TEST_IBAN, lines: 1 }];
      expect(good).toMatchObject({ refusal: null, statements });
      expect(refusal.code).toBe('sum_mismatch');
      expect(readdirSync(join(inbox.folder, 'refused'))).toEqual(['wrong.xml', 'wrong.xml.txt']);
      const reason = `${refusal.code}: ${refusal.message}\n`;
      expect(readRefused('wrong.xml.txt')).toBe(reason);
      expect(await importTaken()).toEqual([]);

      // The bank uses the name of a refused one again.
      await inbound().deleteOne({ _id: 'wrong.xml' });
      await take('wrong.xml', wrong('S-11', 2));
      expect(await importTaken()).toHaveLength(1);
      expect(readRefused('wrong.xml.txt')).toBe(reason);
      expect(await inbound().findOne({ _id: 'wrong.xml' })).toMatchObject({
        ...{ folder: 'refused', name: 'wrong-wrong.xm.xml' },
      });
    });

    test('reports a file that is lost, and takes the ones after it', async () => {
      await take('lost.xml', '');
      rmSync(processed('lost.xml'));
      const later = camt([{ id: 'S-9', opening: 1_050, entries: [] }]);
      await take('later.xml', later);
      const lost = { file: 'lost.xml', refusal: { code: 'file_not_found' } };
      expect(await importTaken()).toMatchObject([lost, { refusal: null }]);
      expect(await importTaken()).toMatchObject([lost]);
      await inbound().deleteOne({ _id: 'lost.xml' });
    });

    test('puts a refused file away that a killed or another import has left or moved', async () => {
      const refusal = { code: 'sum_mismatch', message: 'A reason.' };
      const before = await inbound().countDocuments({ folder: 'refused' });
      const refuse = (name: string, refused_as = name) =>
        take(name, '<xml/>', { refusal, refused_as });
      await refuse('left.xml');
      await refuse('gone.xml');
      // Killed right after; the bank uses its name again.
      renameSync(processed('gone.xml'), join(inbox.folder, 'refused', 'gone.xml'));
      writeFileSync(processed('gone.xml'), 'another');
      await refuse('away.xml', 'away-2.xml');
      rmSync(processed('away.xml'));
      await take('next.xml', camt([{ id: 'S-10', entries: [{ amount: 5 }], opening: 1_050 }]));
      const put = { refusal };
      expect(await importTaken()).toMatchObject([put, put, put, { refusal: null }]);
      const left = readdirSync(join(inbox.folder, 'processed')).toSorted();
      expect(left).toEqual(['gone.xml', 'good.xml', 'later.xml', 'next.xml']);
      expect(readRefused('gone.xml')).toBe('<xml/>');
      expect(readRefused('gone.xml.txt')).toBe('sum_mismatch: A reason.\n');
      expect(await inbound().countDocuments({ folder: 'refused' })).toBe(before + 3);
      expect(await importTaken()).toEqual([]);
    });

    test('of a file that it refuses calls an operator until the statement comes in another', async () => {
      const write = (more: object = {}) =>
        camt([{ id: 'S-13', opening: 1_055, entries: [{ amount: 7, ...more }] }]);
      const listCalling = async () =>
        Object(await service.json('attention list')).data.filter(
          ({ reason }: { reason: string }) => reason === 'bank_file_refused',
        );
      await take('far.xml', write({ value_date: '2027-11-20' }));
      expect(await importTaken()).toMatchObject([{ refusal: { code: 'file_invalid' } }]);
      const [row, ...more] = await listCalling();
      expect(row).toMatchObject({ name: 'far.xml', code: 'file_invalid', currency: 'EUR' });
      expect(more).toEqual([]);
      const acknowledge = `attention acknowledge ${row.id} --reason "Ticket 42"`;
      expect(await service.json(acknowledge)).toMatchObject({ reason: 'bank_file_refused' });
      expect(await listCalling()).toEqual([]);
      await importTaken();
      expect(await inbound().findOne({ _id: 'far.xml' })).not.toHaveProperty('attention');

      await take('far-2.xml', write({ value_date: '2027-11-21' }));
      await importTaken();
      expect(await listCalling()).toMatchObject([{ name: 'far-2.xml' }]);
      await take('near.xml', write());
      expect(await importTaken()).toMatchObject([{ refusal: null }]);
      expect(await listCalling()).toEqual([]);
      expect(await inbound().findOne({ _id: 'far-2.xml' })).not.toHaveProperty('attention');
    });

    test('refuses a file once of which two imports take notice at once', async () => {
      await take('both.xml', wrong('S-12', 3));
      await Promise.allSettled([importTaken(), importTaken()]);
      expect(await inbound().findOne({ _id: 'both.xml' })).toMatchObject({
        ...{ folder: 'refused', name: 'both.xml', refusal: { code: 'sum_mismatch' } },
      });
      expect(await importTaken()).toEqual([]);
    });
  });
});
