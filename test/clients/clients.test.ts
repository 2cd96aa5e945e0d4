import { cpSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '../../clients/typescript/src';
import { signPayload } from '../../src/webhooks/signature';
import { findOnPath } from '../../stack/provision/command';
import { fundAccount } from '../support/factories';
import { useFixture } from '../support/fixture';
import { idealPayment } from '../support/http';
import { runProgram } from '../support/programs';
import { describeWith, installPythonTools } from '../support/python-tools';
import { useAccount, useService } from '../support/service';

const ROOT = join(__dirname, '../..');
const TYPESCRIPT = join(ROOT, 'clients/typescript');
const PYTHON = join(ROOT, 'clients/python');
const EXAMPLES = join(ROOT, 'docs/examples');

const service = useService();
const account = useAccount(service);
const pythonAccount = useAccount(service);
const settings = () => ({ apiKey: account.key, baseUrl: service.url });
const client = useFixture(async () => createClient(settings()));

/** Output of a shop that created a payment, and read one that does not exist. */
const SHOP_OUTPUT = /^(?:created|awaiting_customer) payment_not_found\n$/;

describe('the TypeScript client', () => {
  // Its other calls: test/guides/snippets.test.ts
  test('lists rows one by one, and page by page', async () => {
    const ids: string[] = [];
    for (let amount = 101; amount <= 103; amount += 1) {
      ids.unshift((await client.payments.create(idealPayment({ amount }))).id);
    }
    const rows: string[] = [];
    for await (const { id } of client.payments.list({ limit: 2 })) rows.push(id);
    expect(rows).toEqual(ids);
    const pages = [];
    for await (const page of client.payments.list({ limit: 2 }).pages())
      pages.push(page.data.length);
    expect(pages).toEqual([2, 1]);
  });

  test('gives the exact text of an answer, whatever numbers are in metadata', async () => {
    const metadata = { exact: '12345678901234567890', number: 1.5 };
    const payment = await client.payments.create({ ...idealPayment(), metadata });
    expect(payment.metadata).toEqual(metadata);
    const raw = await account.postRaw(
      '/v1/payments',
      JSON.stringify(idealPayment()).replace(/}$/, ',"metadata":{"n":12345678901234567890}}'),
    );
    let text = '';
    await client.payments.get(raw.body.id, {
      onResponse: (response) => {
        text = response.text;
      },
    });
    expect(text).toContain('"n":12345678901234567890');
  });

  describe('as a package', () => {
    const folder = mkdtempSync(join(tmpdir(), 'consumer-'));
    const run = (command: string, args: string[], cwd = folder) =>
      runProgram(command, args, { cwd });

    beforeAll(async () => {
      cpSync(join(TYPESCRIPT, 'consumer'), folder, { recursive: true });
      await run('npm', ['pack', '--silent', '--pack-destination', folder], TYPESCRIPT);
      await run('npm', [
        'install',
        '--offline',
        '--no-save',
        './durable-payments-client-1.0.0.tgz',
      ]);
      symlinkSync(join(ROOT, 'node_modules/@types'), join(folder, 'node_modules/@types'));
    });
    afterAll(() => rmSync(folder, { recursive: true }));

    test('has its types, and neither sources nor tests', async () => {
      const output = await run('find', ['node_modules/@durable-payments', '-type', 'f']);
      const files = output.split('\n');
      expect(files.some((path) => path.endsWith('dist/index.d.ts'))).toBe(true);
      expect(files.filter((path) => /\/src\/|consumer|lock/.test(path))).toEqual([]);
    });

    test('type-checks in a project, as an ES module and as CommonJS', async () => {
      expect(await run(join(ROOT, 'node_modules/.bin/tsc'), ['-p', '.'])).toBe('');
    });

    test.each(['esm.mjs', 'cjs.cjs'])('runs in Node.js: %s', async (file) => {
      const output = await run(process.execPath, [file, service.url, account.key]);
      expect(output).toMatch(SHOP_OUTPUT);
    });
  });
});

describeWith('python3', 'the Python client', () => {
  const work = useFixture(
    async () => {
      const folder = mkdtempSync(join(tmpdir(), 'python-client-'));
      const source = join(folder, 'package');
      cpSync(PYTHON, source, { recursive: true });
      const tools = await installPythonTools(join(PYTHON, 'requirements-dev.txt'));
      return { folder, source, env: { PYTHONPATH: tools, PYTHONDONTWRITEBYTECODE: '1' } };
    },
    ({ folder }) => rmSync(folder, { recursive: true }),
  );

  test('passes its own tests against the service', async () => {
    const { source: cwd, env } = work;
    const PYTHONPATH = join(cwd, 'src');
    await fundAccount(service, pythonAccount, { amount: 1_000_000 });
    const stack = { DURABLE_PAYMENTS_URL: service.url, DURABLE_PAYMENTS_KEY: pythonAccount.key };
    const args = ['-W', 'error', '-m', 'unittest', 'discover', '-s', 'tests', '-t', '.'];
    await runProgram('python3', args, { cwd, env: { ...env, ...stack, PYTHONPATH } });
  });

  test('is fully typed', async () => {
    const { source: cwd, env } = work;
    expect(await runProgram('python3', ['-m', 'mypy'], { cwd, env })).toContain('no issues found');
  });

  test('is a wheel, with which a project type-checks and runs', async () => {
    const { folder, source, env } = work;
    const wheel = ['wheel', '-q', '--no-deps', '--no-build-isolation', '--no-index', '-w', folder];
    await runProgram('python3', ['-m', 'pip', ...wheel, source], { env });
    const file = readdirSync(folder).find((name) => name.endsWith('.whl')) ?? '';
    expect(file).toBe('durable_payments-1.0.0-py3-none-any.whl');
    const venv = join(folder, 'venv');
    await runProgram('python3', ['-m', 'venv', '--without-pip', venv]);
    const python = join(venv, 'bin/python');
    const install = ['--python', python, 'install', '-q', '--no-index', join(folder, file)];
    await runProgram('python3', ['-m', 'pip', ...install]);
    const shop = join(PYTHON, 'consumer/shop.py');
    const check = ['-m', 'mypy', '--strict', '--python-executable', python, shop];
    await runProgram('python3', check, { cwd: folder, env });
    const output = await runProgram(python, [shop, service.url, pythonAccount.key]);
    expect(output).toMatch(SHOP_OUTPUT);
  });
});

const SECRET = 'whsec_of_a_test';
const BODY = '{"id":"evt_1","type":"payment.settled","data":{"payment_id":"Zoë"}}';

const LANGUAGES = [
  ['php', ['shop.php']],
  ['go', ['run', 'shop.go']],
  ['java', ['Shop.java']],
] as const;

describe.each(LANGUAGES)('the example in %s', (program, args) => {
  const isHere = findOnPath(program, process.env['PATH']) !== undefined;
  const testIfHere = isHere ? test : test.skip;
  const run = (more: string[], input = '') =>
    runProgram(program, [...args, ...more], { cwd: EXAMPLES, input });

  testIfHere(`creates a payment (skipped without ${program})`, async () => {
    const output = await run(['create', service.url, account.key]);
    expect(output).toMatch(/http\S+\/pay\/[\w-]{40,}/);
  });

  testIfHere(`verifies webhooks (skipped without ${program})`, async () => {
    const now = Math.floor(Date.now() / 1_000);
    const verify = (signature: string, secret = SECRET) => run(['verify', secret, signature], BODY);
    const genuine = signPayload(SECRET, BODY, now);
    expect(await verify(genuine)).toContain('payment.settled');
    expect(await verify(signPayload(SECRET, BODY, now - 600))).toBe('refused\n');
    expect(await verify(genuine, 'whsec_another')).toBe('refused\n');
  });
});

describeWith('php', 'the example in PHP', () => {
  test('gives a shop that includes it its functions alone', async () => {
    const signature = signPayload(SECRET, BODY, Math.floor(Date.now() / 1_000));
    const code = `require 'shop.php';
    echo json_encode([isGenuine($argv[1], $argv[2], $argv[3]), isGenuine($argv[1], $argv[2], 'x')]);`;
    const args = ['-d', 'display_errors=1', '-r', code, BODY, signature, SECRET];
    expect(await runProgram('php', args, { cwd: EXAMPLES })).toBe('[true,false]');
  });
});
