import { type ChildProcess, execFile, spawn } from 'node:child_process';
import {
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { createClient, verifyWebhook } from '../../clients/typescript/src';
import { EVENT_TYPES } from '../../clients/typescript/src/cli/triggers';
import { inBatches } from '../../src/base/batches';
import { redeliverEvent } from '../../src/service/events/redeliveries';
import { signPayload } from '../../src/webhooks/signature';
import { findOnPath } from '../../stack/provision/command';
import { buildPayment, fundAccount } from '../support/factories';
import { useFixture } from '../support/fixture';
import { useHook } from '../support/hook';
import { eventually, idealPayment } from '../support/http';
import { runProgram } from '../support/programs';
import { describeWith, installPythonTools } from '../support/python-tools';
import { useAccount, useService } from '../support/service';

const ROOT = join(__dirname, '../..');

const service = useService();

const TYPESCRIPT = join(ROOT, 'clients/typescript');
const PYTHON = join(ROOT, 'clients/python');
const EXAMPLES = join(ROOT, 'docs/examples');
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

  test('lists disputes, and answers them with evidence or accepts them', async () => {
    const dispute = async () => {
      const { id: payment_id } = await buildPayment(account, { status: 'settled' });
      await client.sandbox.simulatePayment(payment_id, { event: 'dispute_opened' });
      const [opened] = (await client.disputes.list({ payment_id })).data;
      return opened?.id ?? '';
    };
    const [first, second] = [await dispute(), await dispute()];
    const answered = await client.disputes.submitEvidence(first, { explanation: 'Signed for.' });
    expect(answered.status).toBe('under_review');
    expect((await client.disputes.accept(second)).status).toBe('accepted');
    expect(await client.disputes.get(first)).toEqual(answered);
    const ids: string[] = [];
    for await (const { id } of client.disputes.list({ limit: 1 })) ids.push(id);
    expect(ids).toEqual([second, first]);
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

const CLIENT = join(ROOT, 'clients/typescript');
/** Kills, of either side in turn, each during 20 events: 25 kills 500. */
const KILLS = Number(process.env['LISTEN_KILLS'] ?? 4);
const WALLET = '0x52908400098527886E0F7030069857D2E4169EE7';
const listener = useAccount(service);
const other = useAccount(service);
const hook = useHook(service);

/** The command line as its package has it. */
const cli = useFixture(
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'listen-'));
    const tsc = join(ROOT, 'node_modules/.bin/tsc');
    await promisify(execFile)(tsc, ['-p', CLIENT, '--outDir', join(folder, 'dist')]);
    cpSync(join(CLIENT, 'package.json'), join(folder, 'package.json'));
    return { folder, main: join(folder, 'dist/cli/main.js') };
  },
  ({ folder }) => rmSync(folder, { recursive: true }),
);

interface Received {
  id: string;
  type: string;
  repeat: string | undefined;
}

/** A server that can be killed and started again on its port. */
function createShop() {
  const received: Received[] = [];
  let server: Server | undefined;
  let secret = '';
  let port = 0;
  const shop = {
    received,
    status: 200,
    url: () => `localhost:${port}/hooks`,
    setSecret: (value: string) => {
      secret = value;
    },
    start: async () => {
      server = createServer(async (request, response) => {
        const body = await text(request);
        const signature = String(request.headers['service-signature']);
        const { id, type } = verifyWebhook({ body, signature, secret });
        received.push({ id, type, repeat: request.headers['service-repeat']?.toString() });
        response.writeHead(shop.status).end();
      });
      const listening = server;
      await new Promise<void>((resolve) => listening.listen(port, '127.0.0.1', resolve));
      port = (server.address() as AddressInfo).port;
    },
    kill: () => {
      server?.close();
      server?.closeAllConnections();
    },
  };
  return shop;
}

const shop = useFixture(
  async () => {
    const created = createShop();
    await created.start();
    return created;
  },
  ({ kill }) => kill(),
);

/** Runs `listen` until it is killed; gives the secret that it prints once it is ready. */
async function startListen(...more: string[]) {
  const state = join(cli.folder, 'state.json');
  const args = ['listen', '--forward-to', shop.url(), '--state', state, ...more];
  const env = {
    ...process.env,
    DURABLE_PAYMENTS_KEY: listener.key,
    DURABLE_PAYMENTS_URL: service.url,
  };
  const child: ChildProcess = spawn(process.execPath, [cli.main, ...args], { env });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer) => {
      output += chunk;
    });
  }
  const exit = new Promise<number | null>((resolve) => child.on('exit', resolve));
  const secret = await eventually('the secret', async () => {
    return /Signing secret: (\S+)[\s\S]*Waiting/.exec(output)?.[1];
  });
  shop.setSecret(secret);
  return {
    secret,
    output: () => output,
    stop: async (signal: NodeJS.Signals) => {
      child.kill(signal);
      return await exit;
    },
  };
}

function run(args: string[], key = listener.key) {
  const env = { ...process.env, DURABLE_PAYMENTS_KEY: key, DURABLE_PAYMENTS_URL: service.url };
  return promisify(execFile)(process.execPath, [cli.main, ...args], { env });
}

const listenerClient = useFixture(async () =>
  createClient({ apiKey: listener.key, baseUrl: service.url }),
);

async function createPayments(count: number): Promise<void> {
  for (let made = 0; made < count; made += 10) {
    await Promise.all(
      Array.from({ length: 10 }, () => listenerClient.payments.create(idealPayment())),
    );
  }
}

/** IDs of all events, once each payment has its event. */
async function listEvents(count: number): Promise<string[]> {
  return await eventually(`${count} events`, async () => {
    const ids: string[] = [];
    for await (const { id } of listenerClient.events.list({ limit: 100 })) ids.push(id);
    return ids.length === count && ids;
  });
}

const areAllReceived = (ids: string[]) => async () => {
  const known = new Set(shop.received.map(({ id }) => id));
  return ids.every((id) => known.has(id));
};

test(
  'forwards every event, whichever side is killed, and marks repeats',
  async () => {
    await createPayments(10);
    const old = new Set(await listEvents(10));
    let listen = await startListen();
    const { secret } = listen;
    for (let round = 1; round <= KILLS; round += 1) {
      const creating = createPayments(20);
      if (round % 2 === 1) {
        await listen.stop('SIGKILL');
        listen = await startListen();
        expect(listen.secret).toBe(secret);
      } else {
        shop.kill();
        await creating;
        await shop.start();
      }
      await creating;
    }
    const ids = await listEvents(10 + KILLS * 20);
    const expected = ids.filter((id) => !old.has(id));
    await eventually('all events', areAllReceived(expected));
    const unmarked = shop.received.filter(({ repeat }) => repeat === undefined).map(({ id }) => id);
    expect(new Set(unmarked).size).toBe(unmarked.length);
    expect(shop.received.filter(({ id }) => old.has(id))).toEqual([]);
    expect(await listen.stop('SIGTERM')).toBe(0);
  },
  Math.max(240_000, KILLS * 30_000),
);

test('shows and repeats a failed delivery, and forwards an event that is sent again to an endpoint', async () => {
  await hook.register(listener);
  const listen = await startListen('--events', 'payment.settled', '--from-now');
  shop.received.length = 0;
  shop.status = 500;
  const { stdout } = await run(['trigger', 'payment.settled']);
  const [type, id] = stdout.trim().split(/\s+/);
  expect(type).toBe('payment.settled');
  await eventually('the event', async () => shop.received.length > 0);
  const file = join(cli.folder, 'state.json');
  const readState = async () => JSON.parse(readFileSync(file, 'utf8'));
  const { refused, ...rest } = await eventually('the refusal', async () => {
    const state = await readState();
    return state.refused.length > 0 && state.sending === undefined && state;
  });
  await listen.stop('SIGKILL');
  // As if the ten seconds until the retry were over.
  const due = refused.map((each: object) => ({ ...each, at: 0 }));
  writeFileSync(file, JSON.stringify({ ...rest, refused: due }));
  shop.status = 200;
  const again = await startListen('--events', 'payment.settled');
  await eventually('the retry', async () => {
    return shop.received.some(({ repeat }) => repeat === 'retry');
  });
  await eventually('the delivery', async () => {
    const { deliveries } = await readState();
    return deliveries[id ?? '']?.[0]?.status === 'delivered';
  });
  const { stores, temporal, queues } = service;
  const deps = { stores, temporal, webhookQueue: queues.webhooks, now: () => new Date() };
  await redeliverEvent(deps, id ?? '');
  await eventually('the redelivery', async () => again.output().includes('(redelivery)'));
  expect(shop.received.at(-1)?.repeat).toBe('redelivery');
  expect(new Set(shop.received.map((received) => received.id))).toEqual(new Set([id]));
  expect(listen.output()).toMatch(/ 500 {2}\d+ ms {2}payment\.settled {2}evt_/);
  await again.stop('SIGTERM');
});

test('triggers every type of event', async () => {
  const { account_id } = other;
  await fundAccount(service, other, { amount: 1_000_000 });
  await service.stores.accounts.setCrypto(account_id, true);
  const now = new Date().toISOString();
  const wallet = { account_id, livemode: false, network: 'ethereum', address: WALLET } as const;
  await service.stores.wallets.set(wallet, { now, counts_from: now });
  const lines: { stdout: string }[] = [];
  // Each is a process, of which more at once would wait for each other.
  for await (const types of inBatches(EVENT_TYPES, 4)) {
    lines.push(...(await Promise.all(types.map((type) => run(['trigger', type], other.key)))));
  }
  expect(lines.map(({ stdout }) => stdout.split('  ')[0])).toEqual(EVENT_TYPES);
  for (const { stdout } of lines)
    expect(stdout).toMatch(/ {2}evt_[0-9a-f-]+ {2}(dp_)?[0-9a-f-]+\n$/);
});

test('names the mistake in its arguments, and how it is used', async () => {
  const mistakes: [args: string[], words: string][] = [
    [['listen'], 'Name your server'],
    [['listen', '--forward-to', 'localhost:1', '--events', 'payment.paid'], 'payment.paid'],
    [['trigger', 'payment.settled', '--key', 'sk_live_x'], 'sandbox key'],
    [['trigger', '--colour'], "Unknown option '--colour'"],
  ];
  const errors = await Promise.all(mistakes.map(([args]) => run(args).catch((error) => error)));
  for (const [n, [args, words]] of mistakes.entries()) {
    const { stderr, code } = errors[n] ?? {};
    expect([args, stderr]).toEqual([args, expect.stringContaining(words)]);
    expect(stderr).not.toContain('    at ');
    expect(code).toBeGreaterThan(0);
  }
  const help = [[], ['listen', '--help'], ['trigger', '--help']];
  for (const { stdout } of await Promise.all(help.map((args) => run(args)))) {
    expect(stdout).toMatch(/^Usage: durable-payments/);
  }
});
