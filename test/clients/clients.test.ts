import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
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
import { runTrigger } from '../../clients/typescript/src/cli/trigger-command';
import { EVENT_TYPES } from '../../clients/typescript/src/cli/triggers';
import { inBatches } from '../../src/base/batches';
import { redeliverEvent } from '../../src/service/events/redeliveries';
import { signPayload } from '../../src/webhooks/attempt';
import { findOnPath } from '../../stack/provision/command';
import { eventually } from '../support/eventually';
import { buildPayment, fundAccount } from '../support/factories';
import { useFixture } from '../support/fixture';
import { useHook } from '../support/hook';
import { idealPayment } from '../support/http';
import { runProgram } from '../support/programs';
import { describeWith, installPythonTools } from '../support/python-tools';
import { useAccount, useService } from '../support/service';

const ROOT = join(__dirname, '../..');
const TYPESCRIPT = join(ROOT, 'clients/typescript');
const PYTHON = join(ROOT, 'clients/python');

const service = useService();
const account = useAccount(service);
const pythonAccount = useAccount(service);
const client = useFixture(async () => createClient({ apiKey: account.key, baseUrl: service.url }));

/** A project of a merchant with the package of the TypeScript client. */
const project = useFixture(
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'consumer-'));
    const run = (command: string, args: string[], cwd = folder) =>
      runProgram(command, args, { cwd });
    cpSync(join(TYPESCRIPT, 'consumer'), folder, { recursive: true });
    await run('npm', ['pack', '--silent', '--pack-destination', folder], TYPESCRIPT);
    const file = './durable-payments-client-1.0.0.tgz';
    await run('npm', ['install', '--offline', '--no-save', file]);
    symlinkSync(join(ROOT, 'node_modules/@types'), join(folder, 'node_modules/@types'));
    const installed = join(folder, 'node_modules/@durable-payments/client');
    return { folder, run, installed, main: join(installed, 'dist/cli/main.js') };
  },
  ({ folder }) => rmSync(folder, { recursive: true }),
);

/** Output of a shop that created a payment, and read one that does not exist. */
const SHOP_OUTPUT = /^(?:created|awaiting_customer) payment_not_found\n$/;

// Other calls: test/guides/snippets.test.ts
describe('the TypeScript client', () => {
  test('lists rows one by one, and page by page', async () => {
    const ids: string[] = [];
    for (let amount = 101; amount <= 103; amount += 1) {
      ids.unshift((await client.payments.create(idealPayment({ amount }))).id);
    }
    const list = client.payments.list({ limit: 2 });
    const rows: string[] = [];
    for await (const { id } of list) rows.push(id);
    expect(rows).toEqual(ids);
    const pages: number[] = [];
    for await (const page of list.pages()) pages.push(page.data.length);
    expect(pages).toEqual([2, 1]);
  });

  test('lists disputes, and answers them with evidence or accepts them', async () => {
    const dispute = async () => {
      const { id: payment_id } = await buildPayment(account, { status: 'settled' });
      await client.sandbox.simulatePayment(payment_id, { event: 'dispute_opened' });
      return (await client.disputes.list({ payment_id })).data[0]?.id ?? '';
    };
    const [first, second] = [await dispute(), await dispute()];
    const answered = await client.disputes.submitEvidence(first, { explanation: 'Signed for.' });
    expect(answered.status).toBe('under_review');
    expect((await client.disputes.accept(second)).status).toBe('accepted');
    expect(await client.disputes.get(first)).toEqual(answered);
  });

  test('gives the exact text of an answer, whatever numbers are in metadata', async () => {
    const body = JSON.stringify(idealPayment()).replace(
      /}$/,
      ',"metadata":{"n":12345678901234567890}}',
    );
    const { id } = (await account.postRaw('/v1/payments', body)).body;
    const texts: string[] = [];
    await client.payments.get(id, { onResponse: ({ text }) => void texts.push(text) });
    expect(texts).toEqual([expect.stringContaining('"n":12345678901234567890')]);
  });

  test('is a package without sources or tests, which type-checks and runs as an ES module and as CommonJS', async () => {
    const { run, installed } = project;
    const files = readdirSync(installed, { recursive: true, encoding: 'utf8' });
    expect(files).toContain('dist/index.d.ts');
    expect(files.filter((path) => /^src|consumer|lock/.test(path))).toEqual([]);
    expect(await run(join(ROOT, 'node_modules/.bin/tsc'), ['-p', '.'])).toBe('');
    for (const file of ['esm.mjs', 'cjs.cjs']) {
      const output = await run(process.execPath, [file, service.url, account.key]);
      expect(output).toMatch(SHOP_OUTPUT);
    }
  });
});

describeWith('python3', 'the Python client', () => {
  const work = useFixture(
    async () => {
      const folder = mkdtempSync(join(tmpdir(), 'python-client-'));
      const source = join(folder, 'package');
      cpSync(PYTHON, source, { recursive: true });
      const tools = await installPythonTools(join(PYTHON, 'requirements-dev.txt'));
      const env = { PYTHONPATH: tools, PYTHONDONTWRITEBYTECODE: '1' };
      return { folder, source, env: { ...env, MYPY_CACHE_DIR: join(folder, 'types') } };
    },
    ({ folder }) => rmSync(folder, { recursive: true }),
  );

  test('is fully typed, and passes its own tests against the service', async () => {
    const { source: cwd, env } = work;
    expect(await runProgram('python3', ['-m', 'mypy'], { cwd, env })).toContain('no issues found');
    await fundAccount(service, pythonAccount, { amount: 1_000_000 });
    const stack = { DURABLE_PAYMENTS_URL: service.url, DURABLE_PAYMENTS_KEY: pythonAccount.key };
    const args = ['-W', 'error', '-m', 'unittest', 'discover', '-s', 'tests', '-t', '.'];
    const PYTHONPATH = join(cwd, 'src');
    await runProgram('python3', args, { cwd, env: { ...env, ...stack, PYTHONPATH } });
  });

  test('is a wheel, with which a project type-checks and runs', async () => {
    const { folder, source, env } = work;
    const wheel = ['wheel', '-q', '--no-deps', '--no-build-isolation', '--no-index', '-w', folder];
    await runProgram('python3', ['-m', 'pip', ...wheel, source], { env });
    const venv = join(folder, 'venv');
    await runProgram('python3', ['-m', 'venv', '--without-pip', venv]);
    const python = join(venv, 'bin/python');
    const file = join(folder, 'durable_payments-1.0.0-py3-none-any.whl');
    const install = ['--python', python, 'install', '-q', '--no-index', file];
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

describe.each([
  ['php', ['shop.php']],
  ['go', ['run', 'shop.go']],
  ['java', ['Shop.java']],
])('the example in %s', (program, args) => {
  const testIfHere = findOnPath(program, process.env['PATH']) === undefined ? test.skip : test;
  const runExample = (more: string[], input = '') =>
    runProgram(program, [...args, ...more], { cwd: join(ROOT, 'docs/examples'), input });

  testIfHere(`creates a payment and verifies webhooks (skipped without ${program})`, async () => {
    const output = await runExample(['create', service.url, account.key]);
    expect(output).toMatch(/http\S+\/pay\/[\w-]{40,}/);
    const now = Math.floor(Date.now() / 1_000);
    const verify = (signature: string, secret = SECRET) =>
      runExample(['verify', secret, signature], BODY);
    const genuine = signPayload(SECRET, BODY, now);
    expect(await verify(genuine)).toContain('payment.settled');
    expect(await verify(signPayload(SECRET, BODY, now - 600))).toBe('refused\n');
    expect(await verify(genuine, 'whsec_another')).toBe('refused\n');
    if (program !== 'php') return;
    // A shop that includes it has its functions alone.
    const code = `require 'shop.php'; echo json_encode(isGenuine($argv[1], $argv[2], $argv[3]));`;
    const php = ['-d', 'display_errors=1', '-r', code, BODY, genuine, SECRET];
    const cwd = join(ROOT, 'docs/examples');
    expect(await runProgram('php', php, { cwd })).toBe('true');
  });
});

/** Kills, of either side in turn, each during 20 events: 25 kills 500. */
const KILLS = Number(process.env['LISTEN_KILLS'] ?? 4);
const WALLET = '0x52908400098527886E0F7030069857D2E4169EE7';
const listener = useAccount(service);
const other = useAccount(service);
const hook = useHook(service);

/** A server that can be killed and started again on its port. */
function createShop() {
  const received: { id: string; type: string; repeat: string | undefined }[] = [];
  let server: Server | undefined;
  let port = 0;
  const shop = {
    received,
    status: 200,
    secret: '',
    url: () => `localhost:${port}/hooks`,
    start: async () => {
      server = createServer(async (request, response) => {
        const body = await text(request);
        const signature = String(request.headers['service-signature']);
        const { id, type } = verifyWebhook({ body, signature, secret: shop.secret });
        received.push({ id, type, repeat: request.headers['service-repeat']?.toString() });
        response.writeHead(shop.status).end();
      }).listen(port, '127.0.0.1');
      await once(server, 'listening');
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

const buildEnv = (key: string) => ({
  ...process.env,
  DURABLE_PAYMENTS_KEY: key,
  DURABLE_PAYMENTS_URL: service.url,
});
const findState = () => join(project.folder, 'state.json');

/** Runs `listen` until it is killed; gives the secret that it prints once it is ready. */
async function startListen(...more: string[]) {
  const args = ['listen', '--forward-to', shop.url(), '--state', findState(), ...more];
  const child = spawn(process.execPath, [project.main, ...args], { env: buildEnv(listener.key) });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk;
    });
  }
  const exit = once(child, 'exit');
  shop.secret = await eventually('the secret', async () => {
    return /Signing secret: (\S+)[\s\S]*Waiting/.exec(output)?.[1];
  });
  return {
    secret: shop.secret,
    output: () => output,
    stop: async (signal: NodeJS.Signals) => {
      child.kill(signal);
      return (await exit)[0];
    },
  };
}

const run = (args: string[], key = listener.key) =>
  promisify(execFile)(process.execPath, [project.main, ...args], { env: buildEnv(key) });

const listenerClient = useFixture(async () =>
  createClient({ apiKey: listener.key, baseUrl: service.url }),
);

async function createPayments(count: number): Promise<void> {
  const create = () => listenerClient.payments.create(idealPayment());
  for (let made = 0; made < count; made += 10)
    await Promise.all(Array.from({ length: 10 }, create));
}

/** IDs of all events, once each payment has its event. */
async function listEvents(count: number): Promise<string[]> {
  return await eventually(`${count} events`, async () => {
    const ids: string[] = [];
    for await (const { id } of listenerClient.events.list({ limit: 100 })) ids.push(id);
    return ids.length === count && ids;
  });
}

test(
  'the command listen forwards every event, whichever side is killed, and marks repeats',
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
    await eventually('all events', async () => {
      const known = new Set(shop.received.map(({ id }) => id));
      return expected.every((id) => known.has(id));
    });
    const unmarked = shop.received.filter(({ repeat }) => repeat === undefined).map(({ id }) => id);
    expect(new Set(unmarked).size).toBe(unmarked.length);
    expect(shop.received.filter(({ id }) => old.has(id))).toEqual([]);
    expect(await listen.stop('SIGTERM')).toBe(0);
  },
  Math.max(240_000, KILLS * 30_000),
);

test('the command listen shows and repeats a failed delivery, and forwards an event that is sent again', async () => {
  await hook.register(listener);
  const listen = await startListen('--events', 'payment.settled', '--from-now');
  shop.received.length = 0;
  shop.status = 500;
  const { stdout } = await run(['trigger', 'payment.settled']);
  const [type, id] = stdout.trim().split(/\s+/);
  expect(type).toBe('payment.settled');
  await eventually('the event', async () => shop.received.length > 0);
  const readState = async () => JSON.parse(readFileSync(findState(), 'utf8'));
  const { refused, ...rest } = await eventually('the refusal', async () => {
    const state = await readState();
    return state.refused.length > 0 && state.sending === undefined && state;
  });
  await listen.stop('SIGKILL');
  // As if the ten seconds until the retry were over.
  const due = refused.map((each: object) => ({ ...each, at: 0 }));
  writeFileSync(findState(), JSON.stringify({ ...rest, refused: due }));
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

test('the command trigger causes every type of event', async () => {
  const { account_id } = other;
  await fundAccount(service, other, { amount: 1_000_000 });
  await service.stores.accounts.setCrypto(account_id, true);
  const now = new Date().toISOString();
  const wallet = { account_id, livemode: false, network: 'ethereum', address: WALLET } as const;
  await service.stores.wallets.set(wallet, { now, counts_from: now });
  const lines: string[] = [];
  jest.spyOn(process.stdout, 'write').mockImplementation((line) => lines.push(String(line)) > 0);
  const connection = ['--key', other.key, '--base-url', service.url];
  for await (const types of inBatches(EVENT_TYPES, 8)) {
    await Promise.all(types.map((type) => runTrigger([type, ...connection])));
  }
  jest.restoreAllMocks();
  const event = / {2}evt_[0-9a-f-]+ {2}(dp_)?[0-9a-f-]+\n$/;
  expect(lines.map((line) => line.replace(event, '')).toSorted()).toEqual(EVENT_TYPES.toSorted());
});

test('the command line names the mistake in its arguments, and how it is used', async () => {
  const mistakes: [args: string[], words: string][] = [
    [['listen'], 'Name your server'],
    [['listen', '--forward-to', 'localhost:1', '--events', 'payment.paid'], 'payment.paid'],
    [['trigger', 'payment.settled', '--key', 'sk_live_x'], 'sandbox key'],
    [['trigger', '--colour'], "Unknown option '--colour'"],
  ];
  await Promise.all(
    mistakes.map(async ([args, words]) => {
      const { stderr, code } = await run(args).catch((error) => error);
      expect([args, stderr]).toEqual([args, expect.stringContaining(words)]);
      expect([stderr, code > 0]).toEqual([expect.not.stringContaining('    at '), true]);
    }),
  );
  const help = [[], ['listen', '--help'], ['trigger', '--help']];
  for (const { stdout } of await Promise.all(help.map((args) => run(args)))) {
    expect(stdout).toMatch(/^Usage: durable-payments/);
  }
});
