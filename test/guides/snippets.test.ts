import { spawn } from 'node:child_process';
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
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { signPayload } from '../../src/webhooks/signature';
import { freePort } from '../../stack/ports';
import { fundAccount } from '../support/factories';
import { useFixture } from '../support/fixture';
import { openInbox } from '../support/hook';
import { eventually } from '../support/http';
import { runProgram } from '../support/programs';
import { describeWith } from '../support/python-tools';
import { useService } from '../support/service';

const ROOT = join(__dirname, '../..');
const CLIENTS = join(ROOT, 'clients');
const TSC = join(ROOT, 'node_modules/.bin/tsc');
const GUIDES = join(ROOT, 'docs/guides');
const SNIPPETS = join(ROOT, 'docs/snippets');
const SNIPPET_NAMES = readdirSync(SNIPPETS).toSorted();

/** How the snippets of a language are run. */
interface Language {
  file: string;
  /** Program that runs them. Without it, its tests are skipped; CI must have it. */
  program: string;
  env?: Record<string, string>;
}

const PYTHON_ENV = { PYTHONPATH: join(CLIENTS, 'python/src'), PYTHONDONTWRITEBYTECODE: '1' };
const LANGUAGES: Record<'curl' | 'TypeScript' | 'Python' | 'PHP', Language> = {
  curl: { file: 'curl.sh', program: 'bash' },
  TypeScript: { file: 'typescript.mjs', program: 'node' },
  Python: { file: 'python.py', program: 'python3', env: PYTHON_ENV },
  PHP: { file: 'php.php', program: 'php' },
};

/** Strict, and with nothing that Node.js cannot strip when it runs the file itself. */
const COMPILER = [
  ...['--strict', '--noUncheckedIndexedAccess', '--exactOptionalPropertyTypes'],
  ...['--erasableSyntaxOnly', '--verbatimModuleSyntax'],
  ...['--module', 'nodenext', '--target', 'es2022', '--types', 'node'],
];

const service = useService();
const inbox = useFixture(openInbox, ({ close }) => close());

/** A project in which every snippet can run: TypeScript type-checks, and the client is installed. */
const project = useFixture(
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'snippets-'));
    for (const name of SNIPPET_NAMES) {
      cpSync(join(SNIPPETS, name), join(folder, name), { recursive: true });
      // An ES module may wait at its top level.
      cpSync(join(folder, name, 'typescript.ts'), join(folder, name, 'typescript.mts'));
    }
    const source = join(CLIENTS, 'typescript');
    const client = join(folder, 'node_modules/@durable-payments/client');
    cpSync(join(source, 'package.json'), join(client, 'package.json'));
    await runProgram(TSC, ['-p', source, '--outDir', join(client, 'dist')]);
    symlinkSync(join(ROOT, 'node_modules/@types'), join(folder, 'node_modules/@types'));
    const sources = SNIPPET_NAMES.map((name) => join(name, 'typescript.mts'));
    await runProgram(TSC, [...COMPILER, ...sources], { cwd: folder });
    return { folder };
  },
  ({ folder }) => rmSync(folder, { recursive: true }),
);

function runSnippet(
  { file, program, env }: Language,
  name: string,
  variables: Record<string, string>,
): Promise<string> {
  const path = join(project.folder, name, file);
  return runProgram(program, [path], { env: { ...env, ...variables } });
}

/** Files of a snippet; curl receives no webhook, so a shell verifies one. */
const FILES = ['curl.sh', 'php.php', 'python.py', 'typescript.ts'];
const RECEIVER_FILES = ['php.php', 'python.py', 'shell.sh', 'typescript.ts'];

/** Snippets of the receivers below. */
const WEBHOOKS = ['register-endpoint', 'verify-webhook'];

const ID = expect.stringMatching(/^[0-9a-f-]{36}$/);

interface Expected {
  /** Fields of the answer. A program prints these fields in this order; curl prints the answer. */
  prints: Record<string, unknown>;
  /** More fields of the answer to curl. */
  answer?: object;
  /** Variable that holds its ID from then on. */
  variable?: string;
  /** Status that it, or the one that the variable holds, reaches, also after the answer. */
  becomes?: ['payments' | 'payouts', string];
}

/** The variable from which a snippet that prints no ID takes it. */
const ABOUT = { payments: 'PAYMENT_ID', payouts: 'PAYOUT_ID' };

const ANY_STATUS = expect.stringMatching(/^[a-z_]+$/);

/** In the order in which the guides lead to one another. */
const EXPECTED: Record<string, Expected> = {
  'create-payment': {
    prints: { id: ID, redirect_url: expect.stringMatching(/^http\S+\/pay\/[\w-]{40,}$/) },
    answer: { object: 'payment', amount: 1_050 },
    variable: 'PAYMENT_ID',
    becomes: ['payments', 'awaiting_customer'],
  },
  'settle-payment': { prints: { status: ANY_STATUS }, becomes: ['payments', 'settled'] },
  'read-payment': { prints: { status: 'settled', amount: '1050' } },
  refund: {
    prints: { id: ID, status: 'processing' },
    answer: { object: 'refund', amount: 250 },
  },
  'create-recipient': {
    prints: { id: ID },
    answer: { last4: '4300' },
    variable: 'RECIPIENT_ID',
  },
  'create-payout': {
    prints: { id: ID, status: ANY_STATUS },
    answer: { object: 'payout', amount: 5_000 },
    variable: 'PAYOUT_ID',
    becomes: ['payouts', 'sent'],
  },
  'return-payout': { prints: { status: ANY_STATUS }, becomes: ['payouts', 'returned'] },
  'declined-payment': {
    prints: { id: ID, status: ANY_STATUS },
    answer: { amount: 66_602 },
    becomes: ['payments', 'failed'],
  },
};

test('every guide shows its snippets, and every snippet has a guide, a test and four languages', () => {
  const listed = readdirSync(GUIDES).flatMap((guide) => {
    const text = readFileSync(join(GUIDES, guide), 'utf8');
    const links = text.matchAll(/^\[[^\]]+\]\(\.\.\/snippets\/([\w-]+)\/\)$/gm);
    return [...links].map(([, name]) => name);
  });
  const shown = listed.toSorted();
  expect(shown).toEqual(SNIPPET_NAMES);
  expect([...Object.keys(EXPECTED), ...WEBHOOKS].toSorted()).toEqual(SNIPPET_NAMES);
  for (const name of SNIPPET_NAMES) {
    const files = name === 'verify-webhook' ? RECEIVER_FILES : FILES;
    expect({ name, files: readdirSync(join(SNIPPETS, name)).toSorted() }).toEqual({ name, files });
  }
});

for (const [title, language] of Object.entries<Language>(LANGUAGES))
  describeWith(language.program, `the guides in ${title}`, () => {
    // Concurrent, since each program waits for the API most of its time.
    test.concurrent('the snippets do what the guides say, in their order', async () => {
      const account = await service.account();
      await fundAccount(service, account, { amount: 10_000, balance_account: 'marketing' });
      const variables: Record<string, string> = { BASE: service.url, KEY: account.key };
      for (const [name, { prints, answer = {}, variable, becomes }] of Object.entries(EXPECTED)) {
        const output = await runSnippet(language, name, variables);
        const printed = readPrinted(title, Object.keys(prints), output);
        expect({ name, printed }).toEqual({ name, printed: prints });
        const { id = '' } = printed;
        if (becomes !== undefined) {
          const [kind, status] = becomes;
          await service.becomes(kind, id || (variables[ABOUT[kind]] ?? ''), { status });
        }
        if (readFileSync(join(SNIPPETS, name, 'curl.sh'), 'utf8').includes('Idempotency-Key')) {
          // Only the same request gets the same answer under the same key.
          const same = JSON.parse(await runSnippet(LANGUAGES.curl, name, variables));
          expect({ name, same }).toMatchObject({ name, same: { id, ...answer } });
        }
        if (variable !== undefined) variables[variable] = id;
      }
    });
  });

/** Reads the named fields of an answer, which curl prints as JSON, and other programs as words. */
function readPrinted(title: string, names: string[], output: string): Record<string, string> {
  if (title === 'curl') {
    const answer = JSON.parse(output);
    return Object.fromEntries(names.map((name) => [name, String(answer[name])]));
  }
  const words = output.replace(/\n$/, '').split(' ');
  expect(words).toHaveLength(names.length);
  return Object.fromEntries(names.map((name, index) => [name, words[index] ?? '']));
}

const BODY = '{"id":"evt_1","type":"payment.settled","data":{"payment_id":"Zoë"}}';
const Endpoint = z.looseObject({ id: z.string(), signing_secret: z.string() });
const SentEvent = z.looseObject({ id: z.string() });

const now = () => Math.floor(Date.now() / 1_000);

/** Registers an endpoint as the guide does, and then sets the address of a receiver. */
async function registerEndpoint(language: Language, url: string) {
  const account = await service.account();
  const variables = { BASE: service.url, KEY: account.key };
  const output = await runSnippet(language, 'register-endpoint', variables);
  const [id = '', signing_secret = ''] = output.trim().split(' ');
  const endpoint = Endpoint.parse(
    language.file === 'curl.sh' ? JSON.parse(output) : { id, signing_secret },
  );
  const address = `/v1/webhook-endpoints/${endpoint.id}`;
  const registered = await account.get(address);
  expect(registered.body).toMatchObject({ url: 'http://localhost:9000/webhooks' });
  await account.send('PATCH', address, { url });
  return {
    secret: endpoint.signing_secret,
    sendEvent: async () => {
      const { body } = await account.post(`${address}/test`, { type: 'payment.settled' });
      return SentEvent.parse(body).id;
    },
  };
}

/** Runs the receiver of the guide until it is stopped. */
function startReceiver({ file, program, env }: Language, port: number, secret: string) {
  const path = join(project.folder, 'verify-webhook', file);
  const args = file === 'php.php' ? ['-S', `127.0.0.1:${port}`, path] : [path];
  const variables = { ...env, PORT: String(port), SIGNING_SECRET: secret };
  const child = spawn(program, args, { env: { ...process.env, ...variables } });
  const exit = once(child, 'exit');
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk;
    });
  }
  return {
    output: () => output,
    /** @returns the status; none before it listens */
    post: async (signature: string, body = BODY) => {
      const request = { method: 'POST', body, headers: { 'Service-Signature': signature } };
      const answer = await fetch(`http://127.0.0.1:${port}/webhooks`, request).catch(() => null);
      return answer?.status;
    },
    stop: async () => {
      child.kill();
      await exit;
    },
  };
}

const { curl, ...RECEIVERS } = LANGUAGES;

for (const [title, language] of Object.entries<Language>(RECEIVERS))
  describeWith(language.program, `the receiver in ${title}`, () => {
    const receivers: ReturnType<typeof startReceiver>[] = [];
    const start = async (secret: string, port: number) => {
      const receiver = startReceiver(language, port, secret);
      receivers.push(receiver);
      await eventually('a receiver', () => receiver.post(''));
      return receiver;
    };
    afterAll(() => Promise.all(receivers.map(({ stop }) => stop())));

    test('accepts what the service sends, and refuses a missing, wrong or old signature and a changed body', async () => {
      const port = await freePort();
      const { secret, sendEvent } = await registerEndpoint(
        language,
        `http://localhost:${port}/webhooks`,
      );
      const { post, output } = await start(secret, port);
      expect(await post('')).toBe(400);
      expect(await post(signPayload('whsec_another', BODY, now()))).toBe(400);
      expect(await post(signPayload(secret, BODY, now() - 600))).toBe(400);
      expect(await post(signPayload(secret, BODY, now()), `${BODY} `)).toBe(400);
      expect(output()).not.toContain('evt_');
      const id = await sendEvent();
      await eventually('the event', async () => output().includes(`payment.settled ${id}`));
      expect(await post(signPayload(secret, BODY, now()))).toBe(204);
    });

    test('verifies no delivery without a secret', async () => {
      const { post } = await start('', await freePort());
      expect(await post(signPayload('', BODY, now()))).toBe(400);
    });
  });

test('the shell snippet verifies a delivery of the service, and refuses a changed one', async () => {
  const { secret, sendEvent } = await registerEndpoint(curl, inbox.url);
  const id = await sendEvent();
  const delivery = await eventually('the delivery', async () => inbox.received[0]);
  expect(delivery.body).toContain(id);
  const signature = String(delivery.headers['service-signature']);
  const verify = async (variables: Record<string, string>, body = delivery.body) => {
    writeFileSync(join(project.folder, 'body.json'), body);
    return await runProgram('bash', ['verify-webhook/shell.sh'], {
      cwd: project.folder,
      env: { SIGNATURE: signature, SIGNING_SECRET: secret, ...variables },
    });
  };
  expect(await verify({})).toBe('genuine\n');
  const old = signPayload(secret, delivery.body, now() - 600);
  const wrong: Record<string, string>[] = [
    { SIGNING_SECRET: 'whsec_another' },
    { SIGNATURE: '' },
    { SIGNATURE: old },
  ];
  for (const variables of wrong) expect(await verify(variables)).toBe('refused\n');
  expect(await verify({}, `${delivery.body} `)).toBe('refused\n');
});
