import { truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { FILE_BYTES_MAX } from '../../src/statements/read';
import { createMetricStore } from '../../src/store/metrics';
import { camt, TEST_DAY, TEST_IBAN } from '../support/camt';
import { useProvisioning } from './cli';

const service = useProvisioning();
const SOURCE = ['--connector', 'sandbox', '--env', 'sandbox'];

function write(name: string, content: Buffer | string): string {
  const path = join(service.folder, name);
  writeFileSync(path, content);
  return path;
}

function importFile(path: string) {
  return service.json('statement', 'import', path, ...SOURCE);
}

beforeAll(async () => {
  const account = ['--iban', TEST_IBAN, '--currency', 'EUR'];
  await service.json('bank-account', 'add', ...SOURCE, ...account);
});

test('a statement is imported once, shown, and its open line matched and unmatched', async () => {
  const entries = [
    { amount: 1_050, reference: 'ORDER-7', bank_reference: 'B-1' },
    { amount: -5, code: 'PMNT.MDOP.CHRG' },
  ];
  const path = write('s-1.xml', camt([{ entries }]));
  const row = {
    ...{ id: expect.stringMatching(/^st_/), statement_id: 'S-1', kind: 'statement' },
    ...{ account: TEST_IBAN, day: TEST_DAY, lines: 2, matched: 0, booked: 1, open: 1 },
  };
  const imported = await importFile(path);
  expect(imported).toEqual({ ...row, already_imported: false });
  expect(await importFile(path)).toEqual({ ...row, already_imported: true });
  const { id } = imported as { id: string };
  const line = {
    ...{ id: `${id}:1`, account: TEST_IBAN, day: TEST_DAY, value_date: TEST_DAY, amount: 1_050 },
    ...{ currency: 'EUR', reference: 'ORDER-7', bank_reference: 'B-1', kind: 'PMNT.RCDT.ESCT' },
    ...{ fee: 0, status: 'open', unmatched: 1_050, entries: [], different: null, owner: null },
    age_days: expect.any(Number),
  };
  const shown = { id, statement_id: 'S-1', opening: 0, closing: 1_045, closed: false, lines: 2 };
  expect(await service.json('statement', 'show', 'S-1', '--status', 'open')).toMatchObject({
    ...shown,
    data: [line],
    has_more: false,
  });
  expect(await service.json('statement', 'list', ...SOURCE)).toMatchObject({ data: [shown] });
  expect(await service.json('reconciliation', 'show', ...SOURCE)).toEqual({
    ...{ account: TEST_IBAN, currency: 'EUR', day: TEST_DAY, closed: false, matched: 0 },
    ...{ opening: 0, closing: 1_045, ours_only: [], theirs_only: [line], different: [] },
    ...{ findings: [], has_more: false },
  });
  const { stdout } = await service.cli('reconciliation', 'show', ...SOURCE);
  expect(stdout).toMatch(/Only on the statement:\nLINE .*\n.*€10\.50 +ORDER-7 +B-1 +open/);
  const owned = await service.json('statement', 'assign', `${id}:1`, '--owner', 'mia');
  expect(owned).toEqual({ ...line, owner: 'mia' });
  expect(await service.refusal('statement', 'match', `${id}:1`)).toMatchObject({
    code: 'amounts_differ',
  });
  const fees = ['--difference-to', 'expense.bank_fees'];
  expect(await service.json('statement', 'match', `${id}:1`, ...fees)).toMatchObject({
    ...{ status: 'booked', unmatched: 0 },
  });
  expect(await service.json('reconciliation', 'show', ...SOURCE)).toMatchObject({ closed: true });
  expect(await service.json('statement', 'unmatch', `${id}:1`)).toMatchObject({ status: 'open' });
  const byDay = ['--account', TEST_IBAN.toLowerCase(), '--date', TEST_DAY];
  expect(await service.json('reconciliation', 'show', ...SOURCE, ...byDay)).toMatchObject({
    ...{ closed: false, theirs_only: [{ id: `${id}:1` }] },
  });
});

test('a statement that does not add up needs an operator until it is acknowledged', async () => {
  const wrong = write('s-2.xml', camt([{ id: 'S-2', opening: 1_045, closing: 2_000 }]));
  const refuse = () => service.refusal('statement', 'import', wrong, ...SOURCE);
  expect(await refuse()).toEqual({
    code: 'sum_mismatch',
    message: expect.stringContaining('€9.55 is missing'),
  });
  const list = async (...options: string[]) => {
    const page = await service.json('attention', 'list', ...options);
    return (page as { data: { id: string }[] }).data;
  };
  const [row] = await list();
  expect(row).toMatchObject({
    ...{ id: expect.stringMatching(/^bank_account:ba_.*:\d+$/), resource: 'bank_account' },
    ...{ reason: 'sum_mismatch', amount: 955, currency: 'EUR', acknowledged: false },
  });
  const id = row?.id ?? '';
  const why = ['--operator', 'mia', '--reason', 'Ticket 42'];
  const acknowledge = () => service.json('attention', 'acknowledge', id, ...why);
  const done = { id, resource: 'bank_account', reason: 'sum_mismatch', acknowledged: true };
  expect([await acknowledge(), await acknowledge()]).toMatchObject([done, done]);
  expect(await list()).toEqual([]);
  expect(await list('--all')).toMatchObject([{ id, acknowledged: true }]);
  await refuse();
  expect(await list()).toMatchObject([{ reason: 'sum_mismatch' }]);
  const { stuck, statement_lines } = await createMetricStore(service.db).read(new Date());
  const about = { resource: 'bank_account', livemode: 'false', reason: 'sum_mismatch' };
  expect(stuck).toEqual([{ ...about, count: 1 }]);
  const open = { connector: 'sandbox', livemode: 'false', count: 1, day: TEST_DAY };
  expect(statement_lines).toEqual([open]);
  const entries = [{ amount: 955 }];
  await importFile(write('s-2b.xml', camt([{ id: 'S-2', opening: 1_045, entries }])));
  expect(await list()).toEqual([]);
});

test('several statements of a file are listed', async () => {
  const statements = [
    { id: 'S-3', opening: 2_000, day: '2026-11-21' },
    { id: 'S-4', opening: 2_000, day: '2026-11-22' },
  ];
  expect(await importFile(write('two.xml', camt(statements)))).toMatchObject({
    data: [{ statement_id: 'S-3' }, { statement_id: 'S-4' }],
  });
});

test.each([
  ['there is none', 'file_not_found', () => join(service.folder, 'none.xml')],
  [
    'it is too large',
    'file_too_large',
    () => {
      const path = write('large.xml', '<');
      truncateSync(path, FILE_BYTES_MAX + 1);
      return path;
    },
  ],
  ['it is another format', 'format_not_supported', () => write('x.xml', '<a/>')],
  ['it is cut off', 'file_invalid', () => write('cut.xml', camt([{}]).subarray(0, -9))],
  ['its day is missing', 'statement_gap', () => write('g.xml', camt([{ id: 'S-9', opening: 7 }]))],
])('a file is refused when %s', async (_, code, path) => {
  expect(await service.refusal('statement', 'import', path(), ...SOURCE)).toMatchObject({ code });
});

test('an unregistered bank account is refused', async () => {
  const other = ['--account', 'GB82WEST12345698765432'];
  const refusal = await service.refusal('reconciliation', 'show', ...SOURCE, ...other);
  expect(refusal.code).toBe('bank_account_unknown');
});
