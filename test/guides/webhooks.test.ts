import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { signPayload } from '../../src/webhooks/signature';
import { freePort } from '../../stack/ports';
import { useFixture } from '../support/fixture';
import { openInbox } from '../support/hook';
import { eventually } from '../support/http';
import { runProgram } from '../support/programs';
import { describeWith } from '../support/python-tools';
import { useService } from '../support/service';
import { LANGUAGES, type Language, useSnippets } from './languages';

const BODY = '{"id":"evt_1","type":"payment.settled","data":{"payment_id":"Zoë"}}';
const Endpoint = z.looseObject({ id: z.string(), signing_secret: z.string() });
const SentEvent = z.looseObject({ id: z.string() });

const service = useService();
const snippets = useSnippets();
const inbox = useFixture(openInbox, ({ close }) => close());

const now = () => Math.floor(Date.now() / 1_000);

/** Registers an endpoint as the guide does, and then sets the address of a receiver. */
async function registerEndpoint({ file, program, env }: Language, url: string) {
  const account = await service.account();
  const path = join(snippets.folder, 'register-endpoint', file);
  const variables = { BASE: service.url, KEY: account.key };
  const output = await runProgram(program, [path], { env: { ...env, ...variables } });
  const [id = '', signing_secret = ''] = output.trim().split(' ');
  const endpoint = Endpoint.parse(file === 'curl.sh' ? JSON.parse(output) : { id, signing_secret });
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
  const path = join(snippets.folder, 'verify-webhook', file);
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

    test('verifies what the service sends, and refuses the rest', async () => {
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

    test('verifies nothing without a secret', async () => {
      const { post } = await start('', await freePort());
      expect(await post(signPayload('', BODY, now()))).toBe(400);
    });
  });

test('a shell verifies a delivery of the service by hand', async () => {
  const { secret, sendEvent } = await registerEndpoint(curl, inbox.url);
  const id = await sendEvent();
  const delivery = await eventually('the delivery', async () => inbox.received[0]);
  expect(delivery.body).toContain(id);
  const signature = String(delivery.headers['service-signature']);
  const verify = async (variables: Record<string, string>, body = delivery.body) => {
    writeFileSync(join(snippets.folder, 'body.json'), body);
    return await runProgram('bash', ['verify-webhook/shell.sh'], {
      cwd: snippets.folder,
      env: { SIGNATURE: signature, SIGNING_SECRET: secret, ...variables },
    });
  };
  expect(await verify({})).toBe('genuine\n');
  expect(await verify({}, `${delivery.body} `)).toBe('refused\n');
  expect(await verify({ SIGNING_SECRET: 'whsec_another' })).toBe('refused\n');
  expect(await verify({ SIGNATURE: '' })).toBe('refused\n');
  expect(await verify({ SIGNATURE: signPayload(secret, delivery.body, now() - 600) })).toBe(
    'refused\n',
  );
});
