import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCli } from '../../../src/cli/program';

const folder = mkdtempSync(join(tmpdir(), 'connector-new-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs `connector new` without a server, a stack or a database. */
async function create(...args: string[]) {
  const written = { out: '', err: '' };
  const io = {
    env: { DATA_DIR: folder },
    stdout: (text: string) => {
      written.out += text;
    },
    stderr: (text: string) => {
      written.err += text;
    },
  };
  const refuse = () => Promise.reject(new Error('Nothing is rebuilt or checked here.'));
  const loads = { openRebuilder: refuse, checkConnector: refuse };
  const exit = await runCli(['connector', 'new', ...args], io, loads);
  return { exit, ...written };
}

test('a new connector is a copy of the example under its name', async () => {
  const dir = join(folder, 'acme');
  const { exit, out } = await create('acme', '--dir', dir, '--json');
  const files = ['acme.ts', 'main.ts', 'fake-bank.ts', 'test.ts'];
  expect({ exit, json: JSON.parse(out) }).toEqual({ exit: 0, json: { name: 'acme', dir, files } });
  expect(readdirSync(dir).toSorted()).toEqual(files.toSorted());
  const text = files.map((file) => readFileSync(join(dir, file), 'utf8')).join('\n');
  expect(text).not.toMatch(/example/i);
  expect(text).toContain("} from 'durable-payments/connectors/kit';");
  expect(text).toContain("name: 'acme',");
  expect(text).toContain('ACME_API_URL: z.url()');
});

test('an existing directory is left as it is', async () => {
  const dir = join(folder, 'mine');
  const { out: words } = await create('mine', '--dir', dir);
  expect(words).toMatch(/^Before `connector check` can run, compile .*\nand start both/m);
  const { exit, out, err } = await create('other', '--dir', dir);
  expect({ exit, out }).toEqual({ exit: 1, out: '' });
  expect(err).toBe(`${dir} exists: nothing was written. Give another name, or --dir.\n`);
  expect(readdirSync(dir)).toContain('mine.ts');
});

const SHAPE = 'must be 2 to 31 lowercase letters and digits';
test.each([
  ['Acme', SHAPE],
  ['a', SHAPE],
  ['my-bank', SHAPE],
  ['../acme', SHAPE],
  ['sandbox', 'has a meaning already'],
  ['class', 'has a meaning already'],
])('%s is no name of a connector', async (name, why) => {
  const { exit, err } = await create(name, '--dir', join(folder, 'never'));
  expect(exit).toBe(1);
  expect(err).toBe(`"${name}" cannot be the name of a new connector: it ${why}.\n`);
  expect(readdirSync(folder)).not.toContain('never');
});
