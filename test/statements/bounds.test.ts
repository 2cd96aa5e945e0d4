import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { camt, txDtls } from '../support/camt';
import { zip } from '../support/zip';

const run = promisify(execFile);
const good = camt([{ entries: [{ amount: 100 }] }]).toString();

describe('a file of 64 MiB', () => {
  const MIB = 1024 * 1024;
  const folder = mkdtempSync(join(tmpdir(), 'intake-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  const [begin = '', end = ''] = good.split(/<Ntry>.*<\/Ntry>/s);
  const fill = (from: string, part: string, to: string) => {
    const count = Math.floor((64 * MIB - from.length - to.length - 100) / part.length);
    const closing = from.replace(/(CLBD.*?<Amt[^>]*>)[\d.]+/, `$1${count}.00`);
    return `${closing}${part.repeat(count)}${to}`;
  };
  const entry =
    camt([{ entries: [{ amount: 100, reference: 'R'.repeat(35) }] }])
      .toString()
      .match(/<Ntry>.*<\/Ntry>/)?.[0] ?? '';
  const [first = '', last = ''] = entry.split(/<TxDtls>.*<\/TxDtls>/);

  const long = txDtls('EUR', 1, 'R'.repeat(35)).replace(
    '</Refs>',
    `</Refs><AmtDtls><InstdAmt><Amt Ccy="EUR">0.01</Amt></InstdAmt></AmtDtls>${'<Nm>x</Nm>'.repeat(40)}`,
  );

  test.each<[string, () => string | Buffer, RegExp | undefined]>([
    ['of bookings', () => fill(begin, entry, end), undefined],
    [
      'of one booking with 100,000 parts',
      () => camt([{ entries: [{ amount: 100_000, details: long.repeat(100_000) }] }]),
      /100000 lines/,
    ],
    [
      'of one booking with short parts',
      () => fill(begin + first, txDtls('EUR', 1, 'x'), last + end),
      /300000 elements/,
    ],
    ['of elements', () => fill('', '<a/>', ''), /XML of another kind/],
    ['of elements in a statement', () => fill(begin, '<a/>', end), /300000 elements/],
    [
      'of attributes',
      () => fill(`${begin}<Ntry`, ' a="1"', `/>${end}`),
      /too many attributes|well-formed/,
    ],
    ['of one value', () => fill(`${begin}<Ntry a="`, 'xxxx', `"/>${end}`), /10 MiB/],
    ['of depth', () => fill('', '<a>', ''), /100 times/],
    [
      'in a ZIP',
      () => zip([{ name: 'a', content: fill(begin, entry.replace('R'.repeat(35), 'x'), end) }]),
      undefined,
    ],
  ])(
    '%s is read in bounds, or refused',
    async (_, build, refusal) => {
      const path = join(folder, 'file');
      writeFileSync(path, build());
      const script = [join(__dirname, 'read-alone.ts'), path];
      const register = join(__dirname, '../support/register.js');
      const { stdout } = await run(process.execPath, ['--require', register, ...script]);
      const { outcome, pause, memory } = JSON.parse(stdout);
      expect(outcome).toMatch(refusal ?? /^\d+ lines$/);
      expect(pause).toBeLessThan(1_000);
      expect(memory).toBeLessThan(200 * MIB);
    },
    120_000,
  );
});
