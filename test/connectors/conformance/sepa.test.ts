import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PromiseResult } from '../../../src/service/banks/connector-check';
import { useFixture } from '../../support/fixture';
import { listBroken, openSepaBench } from './setting';

type Row = [id: string, result: string, seen: string];

/** Rows of the table in docs/sepa.md: what a check prints about each promise. */
function readDocumentedRows(): Row[] {
  const docs = readFileSync('docs/sepa.md', 'utf8');
  const rows = docs.matchAll(/^\| `([a-z]+\.[a-z_]+)` \| (passed|n\/a) \| (.+) \|$/gm);
  return [...rows].map(([, name = '', result = '', seen = '']) => [name, result, seen]);
}

describe('the connector of SEPA files', () => {
  const bench = useFixture(
    () => openSepaBench(),
    (opened) => opened.stop(),
  );
  const commands = () => bench.commands({ SANDBOX_CONNECTORS: 'sepa=sepa_credit_transfer' });
  const check = ['connector', 'check', 'sepa'];
  const folders = () => ['--files-out', bench.folders.out, '--files-in', bench.folders.in];

  test('keeps every promise that files can keep, and the table says why the others do not apply', async () => {
    const { stdout, stderr } = await commands().cli(...check, ...folders(), '--json');
    const broken = stderr.match(/^failed.*$/gm);
    expect(broken).toBeNull();
    const { promises } = JSON.parse(stdout);
    const rows: Row[] = promises.map(({ id, result, seen }: PromiseResult) => [
      id,
      result === 'not_applicable' ? 'n/a' : result,
      seen,
    ]);
    const isAbsent = ([id]: Row) =>
      /^(refund|session|reversal|payment|evidence|acceptance|dispute)\./.test(id);
    const absent = rows.filter(isAbsent);
    expect(absent.map(([, result]) => result)).toEqual(absent.map(() => 'n/a'));
    // What was seen of a race differs each time.
    const expected = readDocumentedRows().map(([id, result, seen]) => [
      id,
      result,
      result === 'n/a' ? seen : expect.any(String),
    ]);
    expect(rows.filter((row) => !isAbsent(row))).toEqual(expected);
    expect(absent.length).toBeGreaterThan(20);
  });

  test.each([
    ['one folder', () => folders().slice(0, 2)],
    ['a desk next to the folders', () => [...folders(), '--desk', 'http://127.0.0.1:1/desk']],
  ])('is not checked with %s', async (_what, args) => {
    const error = await commands().refusal(...check, ...args());
    expect(error).toEqual({
      code: 'invalid_usage',
      message: expect.stringContaining('--files-in'),
    });
  });

  test('is not checked in folders to which a bank writes', async () => {
    writeFileSync(join(bench.folders.in, 'other', 'camt.053-4711.xml'), 'of a bank');
    expect((await commands().refusal(...check, ...folders())).code).toBe('check_folder_used');
  });
});

type Change = NonNullable<Parameters<typeof openSepaBench>[0]>;

/** Replaces a field of each callback that a connector delivers. */
const changeCallbacks = (change: () => { callback_id: string } | { reason: string }): Change => ({
  deliver: (deliver) => (report) =>
    deliver({ ...report, callback: { ...report.callback, ...change() } }),
});

const MUTANTS: [what: string, broken: string, change: Change][] = [
  [
    'does not ask again before a file is written',
    'files.checked_again',
    { parts: { mayStillSend: async () => true } },
  ],
  [
    'reports a fact under a new callback_id each time',
    'callbacks.once',
    changeCallbacks(() => ({ callback_id: randomUUID() })),
  ],
  [
    'quotes what the bank wrote',
    'files.private',
    changeCallbacks(() => ({ reason: 'To Zephyrine' })),
  ],
];

/** Promises that no mutant breaks by mistake, and those that each has to break. */
const CHECKED = ['payout.repeat', 'payout.callbacks', 'files.one', ...MUTANTS.map(([, id]) => id)];

test.each(MUTANTS)('names a connector of files that %s', async (_what, broken, change) => {
  const bench = await openSepaBench(change);
  try {
    const report = await bench.check(CHECKED);
    expect(listBroken(report).map((each) => each.split(': ')[0])).toEqual([broken]);
  } finally {
    await bench.stop();
  }
});
