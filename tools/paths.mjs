/**
 * Counts the product's files with a function that runs on each of three paths: a payment to its webhook, a
 * returned payout, and a refund in the dashboard. What runs as well while nothing happens does not count.
 *
 * Run as `npm run -s build && node tools/paths.mjs [--list]`; `--list` names the files. It starts a stack
 * of its own, with data that it removes.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values } = parseArgs({ options: { list: { type: 'boolean', default: false } } });
const IDLE_MS = 20_000;
const WAIT_MS = 120_000;
/** Longer than the first and the last process to see a signal are apart. */
const TAKEN_MS = 2_000;
let threads = 1;

const temporary = mkdtempSync(join(tmpdir(), 'durable-payments-paths-'));
const signals = join(temporary, 'signals');
mkdirSync(signals);
const received = [];
const receiver = createServer((request, response) => {
  let body = '';
  request.on('data', (chunk) => {
    body += chunk;
  });
  request.on('end', () => {
    received.push(JSON.parse(body).type);
    response.end();
  });
});
receiver.listen(0, '127.0.0.1');
await once(receiver, 'listening');

const [port, bankPort, uiPort] = await Promise.all([freePort(), freePort(), freePort()]);
const url = `http://localhost:${port}`;
const env = {
  ...process.env,
  ...{ PORT: port, SANDBOX_BANK_PORT: bankPort, TEMPORAL_UI_PORT: uiPort, SANDBOX_AUTOPLAY: 'off' },
  DATA_DIR: join(temporary, 'data'),
};
const preload = `--require ${fileURLToPath(new URL('coverage.cjs', import.meta.url))}`;
const stack = spawn('node', ['--enable-source-maps', 'dist/stack/main.js'], {
  env: { ...env, COVERAGE_DIR: signals, NODE_OPTIONS: preload },
  stdio: ['ignore', 'pipe', 'inherit'],
});
let printed = '';
stack.stdout.on('data', (chunk) => {
  printed += chunk;
});
try {
  await until('the stack', async () => (await fetch(`${url}/readyz`)).ok);
  await measure(await until('the demo account', readDemoAccount));
} finally {
  stack.kill('SIGTERM');
  await once(stack, 'exit');
  receiver.close();
  rmSync(temporary, { recursive: true });
}

async function measure({ key, email, password }) {
  const api = (path, body) => callApi(key, path, body);
  await api('/v1/webhook-endpoints', {
    url: `http://127.0.0.1:${receiver.address().port}/`,
    enabled_events: ['payment.settled', 'payout.returned', 'refund.settled'],
  });
  const simulate = (path, event) => api(`/v1/sandbox/${path}/simulate`, { event });
  const pay = async () => {
    const fields = {
      ...{ amount: 5_000, currency: 'EUR', method: 'ideal', country: 'NL', reference: 'paths' },
      ...{ success_url: 'https://shop.example/paid', error_url: 'https://shop.example/failed' },
    };
    const { id } = await api('/v1/payments', fields);
    await simulate(`payments/${id}`, 'settled');
    await heard('payment.settled');
    return id;
  };
  const { id: recipient_id } = await api('/v1/payout-recipients', {
    ...{ type: 'bank_account', first_name: 'Grace', last_name: 'Hopper' },
    iban: 'NL91ABNA0417164300',
    ...{ address_line1: 'Keizersgracht 1', city: 'Amsterdam', postal_code: '1015 CN' },
  });
  const visitor = await signIn({ email, password });
  const payment = await pay();
  const paths = {
    idle: () => sleep(IDLE_MS),
    'a payment to its webhook': pay,
    'a returned payout': async () => {
      const fields = { recipient_id, method: 'sepa_instant', amount: 1_000, currency: 'EUR' };
      const { id } = await api('/v1/payouts', fields);
      await until('the payout', async () => (await api(`/v1/payouts/${id}`)).status === 'sent');
      await simulate(`payouts/${id}`, 'completed');
      await simulate(`payouts/${id}`, 'returned');
      await heard('payout.returned');
    },
    'a refund in the dashboard': async () => {
      const page = await visitor.visit(`/dashboard/sandbox/payments/${payment}`);
      const question = await visitor.fill(page, '/refund', { amount: '10.00' });
      const { location } = await visitor.fill(question, '/refund', {});
      await simulate(`refunds/${basename(location)}`, 'settled');
      await heard('refund.settled');
    },
  };
  await take();
  const ran = {};
  for (const [name, run] of Object.entries(paths)) {
    await run();
    ran[name] = await take();
  }
  const { idle, ...others } = ran;
  const files = Object.entries(others).map(([name, functions]) => [
    name,
    listFiles(functions, idle),
  ]);
  // A worker whose bundles are older than its code makes others, under names that say no module.
  if (!files.every(([, list]) => list.some((file) => file.startsWith('workflows/')))) {
    throw new Error('No workflow was seen: run `npm run -s build` first.');
  }
  console.table(files.map(([path, list]) => ({ path, files: list.length })));
  if (values.list) for (const [name, list] of files) console.log(`\n${name}\n${list.join('\n')}`);
}

function readDemoAccount() {
  const read = (name) => new RegExp(`${name} +(\\S+)`).exec(printed)?.[1];
  const password = read('password');
  return password && { key: read('sandbox key'), email: read('e-mail'), password };
}

/** Names the functions that ran since the last call, in all processes, each with its file. */
async function take() {
  const number = readdirSync(signals).filter((name) => name.startsWith('signal-')).length + 1;
  writeFileSync(join(signals, `signal-${number}`), '');
  const list = () =>
    readdirSync(signals).filter((name) => /^ran-(\d+).*json$/.exec(name)?.[1] === String(number));
  let before = -1;
  while (list().length !== before || before < threads) {
    before = list().length;
    await sleep(TAKEN_MS);
  }
  threads = before;
  const ran = new Set();
  for (const name of list()) {
    for (const { url, functions } of JSON.parse(readFileSync(join(signals, name), 'utf8'))) {
      const path = url.slice(url.indexOf('/dist/') + '/dist/'.length);
      const find = findModules(path, functions);
      for (const { functionName, ranges } of functions) {
        const [{ startOffset, count }] = ranges;
        const isCounted = count > 0 && functionName !== '' && !isModule(functionName);
        const module = isCounted ? find(startOffset) : undefined;
        if (module !== undefined) ran.add(`${module} ${functionName} ${path} ${startOffset}`);
      }
    }
  }
  return ran;
}

function listFiles(functions, idle) {
  const own = [...functions].filter((each) => !idle.has(each));
  const folder = /^(src|workflows|activities|worker|connectors|stack)\//;
  const files = new Set(own.map((each) => each.split(' ')[0]).filter((file) => folder.test(file)));
  return [...files].sort();
}

/** Says which module has a place of a script: the script itself, or the one around it in a bundle of workflows. */
function findModules(path, functions) {
  if (!path.startsWith('workflow-bundles/')) return () => path;
  const modules = functions.filter(({ functionName }) => isModule(functionName));
  return (offset) =>
    modules
      .find(
        ({ ranges: [{ startOffset, endOffset }] }) => startOffset < offset && offset < endOffset,
      )
      ?.functionName.slice('./dist/'.length);
}

function isModule(name) {
  return name.startsWith('./dist/');
}

async function callApi(key, path, body) {
  const response = await fetch(`${url}${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      Authorization: `Bearer ${key}`,
      ...(body && { 'Content-Type': 'application/json', 'Idempotency-Key': crypto.randomUUID() }),
    },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
  return JSON.parse(text);
}

/** Signs in as a browser without scripts does; each call fills in a form of a page and sends it. */
async function signIn({ email, password }) {
  let cookie = '';
  const visit = async (path, form) => {
    const response = await fetch(new URL(path, url), {
      ...(form && { method: 'POST', body: new URLSearchParams(form) }),
      headers: { Cookie: cookie },
      redirect: 'manual',
    });
    const set = response.headers.getSetCookie().find((each) => each.startsWith('dashboard='));
    if (set !== undefined) [cookie] = set.split(';');
    return { html: await response.text(), location: response.headers.get('location') };
  };
  const fill = async ({ html }, action, fields) => {
    const form = html
      .match(/<form[\s\S]*?<\/form>/g)
      ?.find((each) => /<form[^>]* action="([^"]*)"/.exec(each)?.[1].endsWith(action));
    if (form === undefined) throw new Error(`no form leads to ${action}:\n${html}`);
    const hidden = {};
    for (const [input] of form.matchAll(/<input[^>]*type="hidden"[^>]*>/g)) {
      hidden[/name="([^"]*)"/.exec(input)[1]] = /value="([^"]*)"/.exec(input)?.[1] ?? '';
    }
    return await visit(/ action="([^"]*)"/.exec(form)[1], { ...hidden, ...fields });
  };
  await fill(await visit('/dashboard/sign-in'), '/sign-in', { email, password });
  return { visit, fill };
}

async function heard(type) {
  await until(type, () => received.includes(type));
  received.splice(0);
}

async function until(what, look) {
  const giveUpAt = Date.now() + WAIT_MS;
  while (Date.now() < giveUpAt) {
    const found = await Promise.resolve()
      .then(look)
      .catch(() => undefined);
    if (found) return found;
    if (stack.exitCode !== null) throw new Error(`the stack ended with ${stack.exitCode}`);
    await sleep(200);
  }
  throw new Error(`${what} did not come`);
}

async function freePort() {
  const server = createServer().listen(0);
  await once(server, 'listening');
  const { port: free } = server.address();
  server.close();
  return String(free);
}
