import { spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { join } from 'node:path';
import { signPayload } from '../../src/webhooks/signature';
import { useFixture } from '../support/fixture';
import { eventually } from '../support/http';
import { ROOT } from './pages';

const SECRET = 'whsec_of_a_test';
const BODY = '{"id":"evt_1","type":"payment.settled","data":{"payment_id":"p"}}';

/** The receiver that the docs link and that merchants copy. */
const receiver = useFixture(
  async () => {
    const script = join(ROOT, 'docs/examples/receiver.mjs');
    const child = spawn(process.execPath, [script, SECRET, '0'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const printed = { text: '' };
    child.stdout.on('data', (chunk: Buffer) => {
      printed.text += chunk;
    });
    await eventually('the receiver', async () => /Listening on \S+/.test(printed.text));
    const [, url = ''] = /Listening on (\S+)/.exec(printed.text) ?? [];
    return { url, printed, stop: () => child.kill() };
  },
  ({ stop }) => stop(),
);

async function post(signature: string | undefined, body = BODY): Promise<number> {
  const headers = new Headers(signature === undefined ? [] : [['Service-Signature', signature]]);
  return (await fetch(receiver.url, { method: 'POST', body, headers })).status;
}

const now = () => Math.floor(Date.now() / 1_000);

test('the receiver answers 204 to a genuine delivery, and recognizes its repeat', async () => {
  expect(await post(signPayload(SECRET, BODY, now()))).toBe(204);
  expect(await post(signPayload(SECRET, BODY, now() - 240))).toBe(204);
  for (const line of [
    'verified: payment.settled {"payment_id":"p"} evt_1',
    'evt_1 (seen before)',
  ]) {
    await eventually(line, async () => receiver.printed.text.includes(line));
  }
});

const signAt = (t: string) =>
  `t=${t},v1=${createHmac('sha256', SECRET).update(`${t}.${BODY}`).digest('hex')}`;

test.each<[string, () => string | undefined]>([
  ...['soon', '', '1e999'].map(
    (t) => [`has the time "${t}"`, () => signAt(t)] satisfies [string, () => string],
  ),
  ['is ten minutes old', () => signPayload(SECRET, BODY, now() - 600)],
  ['is ten minutes early', () => signPayload(SECRET, BODY, now() + 600)],
  ['has another body', () => signPayload(SECRET, `${BODY} `, now())],
  ['has a time without a signature', () => `t=${now()}`],
  ['is not signed', () => undefined],
])('the receiver refuses a delivery that %s', async (_, sign) => {
  expect(await post(sign())).toBe(400);
});
