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
    const message = expect.stringContaining('--files-in');
    const error = await commands().refusal(...check, ...args());
    expect(error).toEqual({ code: 'invalid_usage', message });
  });

  test('is not checked in folders to which a bank writes', async () => {
    writeFileSync(join(bench.folders.in, 'other', 'camt.053-4711.xml'), 'of a bank');
    expect((await commands().refusal(...check, ...folders())).code).toBe('check_folder_used');
  });
});

test('a check names what a connector of files breaks, and nothing else', async () => {
  // It does not ask again before it writes a file, names facts again, and quotes the bank.
  const change = () => ({ callback_id: randomUUID(), reason: 'To Zephyrine' });
  const bench = await openSepaBench({
    parts: { mayStillSend: async () => true },
    deliver: (deliver) => (report) =>
      deliver({ ...report, callback: { ...report.callback, ...change() } }),
  });
  const broken = ['callbacks.once', 'files.checked_again', 'files.private'];
  try {
    const report = await bench.check(['payout.repeat', 'payout.callbacks', 'files.one', ...broken]);
    expect(listBroken(report).map((each) => each.split(': ')[0])).toEqual(broken);
  } finally {
    await bench.stop();
  }
});
