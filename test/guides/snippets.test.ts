import { spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
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
import { signPayload } from '../../src/webhooks/attempt';
import { freePort } from '../../stack/ports';
import { eventually } from '../support/eventually';
import { fundAccount } from '../support/factories';
import { useFixture } from '../support/fixture';
import { openInbox } from '../support/hook';
import { runProgram } from '../support/programs';
import { describeWith } from '../support/python-tools';
import { useService } from '../support/service';

const ROOT = join(__dirname, '../..');
const CLIENTS = join(ROOT, 'clients');
const TSC = join(ROOT, 'node_modules/.bin/tsc');
const GUIDES = join(ROOT, 'docs/guides');
const SNIPPETS = join(ROOT, 'docs/snippets');
const SNIPPET_NAMES = readdirSync(SNIPPETS).toSorted();

/** How the snippets of a language are run: without the program its tests are skipped. */
interface Language {
  file: string;
  program: string;
  env?: Record<string, string>;
}

const PYTHON_ENV = { PYTHONPATH: join(CLIENTS, 'python/src'), PYTHONDONTWRITEBYTECODE: '1' };
const LANGUAGES = {
  curl: { file: 'curl.sh', program: 'bash' },
  TypeScript: { file: 'typescript.mjs', program: 'node' },
  Python: { file: 'python.py', program: 'python3', env: PYTHON_ENV },
  PHP: { file: 'php.php', program: 'php' },
} satisfies Record<string, Language>;

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
  becomes?: [kind: 'payments' | 'payouts', variable: string, status: string];
}

const ANY_STATUS = expect.stringMatching(/^[a-z_]+$/);

/** In the order in which the guides lead to one another. */
const EXPECTED: Record<string, Expected> = {
  'create-payment': {
    prints: { id: ID, redirect_url: expect.stringMatching(/^http\S+\/pay\/[\w-]{40,}$/) },
    answer: { object: 'payment', amount: 1_050 },
    variable: 'PAYMENT_ID',
    becomes: ['payments', 'PAYMENT_ID', 'awaiting_customer'],
  },
  'settle-payment': {
    prints: { status: ANY_STATUS },
    becomes: ['payments', 'PAYMENT_ID', 'settled'],
  },
  'read-payment': { prints: { status: 'settled', amount: '1050' } },
  refund: { prints: { id: ID, status: 'processing' }, answer: { object: 'refund', amount: 250 } },
  'create-recipient': { prints: { id: ID }, answer: { last4: '4300' }, variable: 'RECIPIENT_ID' },
  'create-payout': {
    prints: { id: ID, status: ANY_STATUS },
    answer: { object: 'payout', amount: 5_000 },
    variable: 'PAYOUT_ID',
    becomes: ['payouts', 'PAYOUT_ID', 'sent'],
  },
  'return-payout': {
    prints: { status: ANY_STATUS },
    becomes: ['payouts', 'PAYOUT_ID', 'returned'],
  },
  'declined-payment': {
    prints: { id: ID, status: ANY_STATUS },
    answer: { amount: 66_602 },
    becomes: ['payments', 'PAYMENT_ID', 'failed'],
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
          const [kind, name, status] = becomes;
          await service.becomes(kind, id || (variables[name] ?? ''), { status });
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

/** Runs a receiver until it is stopped: that of the guide, or the one that the docs link. */
function startReceiver({ file, program, env }: Language, port: number, secret: string) {
  const isLinked = file === LINKED.file;
  const path = isLinked
    ? join(ROOT, 'docs/examples', file)
    : join(project.folder, 'verify-webhook', file);
  const more = isLinked ? [secret, String(port)] : [];
  const args = file === 'php.php' ? ['-S', `127.0.0.1:${port}`, path] : [path, ...more];
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

const { curl, ...OF_GUIDES } = LANGUAGES;
/** The receiver that the docs link and that merchants copy. */
const LINKED: Language = { file: 'receiver.mjs', program: 'node' };
const RECEIVERS: Record<string, Language> = { ...OF_GUIDES, 'docs/examples': LINKED };

/** Signs any text as a time. */
const signAt = (secret: string, t: string) =>
  `t=${t},v1=${createHmac('sha256', secret).update(`${t}.${BODY}`).digest('hex')}`;

for (const [title, language] of Object.entries(RECEIVERS))
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
      const url = `http://localhost:${port}/webhooks`;
      const { secret, sendEvent } = await registerEndpoint(
        language === LINKED ? LANGUAGES.TypeScript : language,
        url,
      );
      const { post, output } = await start(secret, port);
      for (const signature of [
        ...['', signPayload('whsec_another', BODY, now()), `t=${now()}`],
        ...[signPayload(secret, BODY, now() - 600), signPayload(secret, BODY, now() + 600)],
        ...['soon', '', '1e999'].map((t) => signAt(secret, t)),
        signPayload(secret, `${BODY} `, now()),
      ]) {
        expect([signature, await post(signature)]).toEqual([signature, 400]);
      }
      expect(output()).not.toContain('evt_');
      const id = await sendEvent();
      await eventually('the event', async () => {
        return new RegExp(`payment\\.settled .*${id}`).test(output());
      });
      expect(await post(signPayload(secret, BODY, now() - 240))).toBe(204);
      expect(await post(signPayload(secret, BODY, now()))).toBe(204);
      if (language !== LINKED) return;
      await eventually('the repeat', async () => output().includes('evt_1 (seen before)'));
    });

    // The linked one does not start without.
    if (language === LINKED) return;
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
  const verify = async (variables: object, body = delivery.body) => {
    writeFileSync(join(project.folder, 'body.json'), body);
    return await runProgram('bash', ['verify-webhook/shell.sh'], {
      cwd: project.folder,
      env: { SIGNATURE: signature, SIGNING_SECRET: secret, ...variables },
    });
  };
  expect(await verify({})).toBe('genuine\n');
  for (const variables of [
    { SIGNING_SECRET: 'whsec_another' },
    { SIGNATURE: '' },
    { SIGNATURE: signPayload(secret, delivery.body, now() - 600) },
  ]) {
    expect(await verify(variables)).toBe('refused\n');
  }
  expect(await verify({}, `${delivery.body} `)).toBe('refused\n');
});
