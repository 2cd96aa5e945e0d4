import { type ChildProcess, spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { join } from 'node:path';
import { signPayload } from '../../src/webhooks/signature';
import { ROOT } from './pages';

/** The receiver that the docs link and that merchants copy. */
const SECRET = 'whsec_of_a_test';
const BODY = '{"id":"evt_1","type":"payment.settled","data":{"payment_id":"p"}}';

let receiver: ChildProcess;
let url: string;
let said = '';

beforeAll(async () => {
  const script = join(ROOT, 'docs/examples/receiver.mjs');
  receiver = spawn(process.execPath, [script, SECRET, '0'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  url = await new Promise<string>((listening) => {
    receiver.stdout?.on('data', (chunk: Buffer) => {
      said += chunk;
      const found = /Listening on (\S+)/.exec(said)?.[1];
      if (found !== undefined) listening(found);
    });
  });
});

afterAll(() => receiver.kill());

async function post(signature: string | undefined, body = BODY): Promise<number> {
  const headers = signature === undefined ? undefined : { 'Service-Signature': signature };
  return (await fetch(url, { method: 'POST', body, ...(headers && { headers }) })).status;
}

/** Waits until the receiver has printed it; the test's own time-out ends the wait. */
async function toSay(text: string): Promise<void> {
  while (!said.includes(text)) await new Promise((later) => setTimeout(later, 10));
}

/** Signed by somebody who knows the secret, whatever `t` is. */
function signed(t: string): string {
  return `t=${t},v1=${createHmac('sha256', SECRET).update(`${t}.${BODY}`).digest('hex')}`;
}

const now = () => Math.floor(Date.now() / 1_000);

test('a genuine delivery is answered 204, and its repeat is told apart', async () => {
  expect(await post(signPayload(SECRET, BODY, now()))).toBe(204);
  expect(await post(signPayload(SECRET, BODY, now() - 240))).toBe(204);
  await toSay('verified: payment.settled {"payment_id":"p"} evt_1');
  await toSay('evt_1 (seen before)');
});

test.each(['soon', 'NaN', '', '1e999'])('a `t` that is no time is refused: %p', async (t) => {
  expect(await post(signed(t))).toBe(400);
});

test('what is old, ahead of time, changed, unsigned or signed by another is refused', async () => {
  expect(await post(signed(String(now() - 600)))).toBe(400);
  expect(await post(signed(String(now() + 600)))).toBe(400);
  expect(await post(signPayload(SECRET, BODY, now()), `${BODY} `)).toBe(400);
  expect(await post(signPayload('whsec_another', BODY, now()))).toBe(400);
  expect(await post(`t=${now()}`)).toBe(400);
  expect(await post(undefined)).toBe(400);
});
