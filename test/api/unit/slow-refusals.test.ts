import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import Koa, { type Context } from 'koa';
import { delayRefusals } from '../../../src/api/slow-refusals';

const AT_ONCE = 50;
/** Half of the shortest wait. */
const EARLY_MS = 500;

function callOf(account_id: string | undefined) {
  const request = new IncomingMessage(new Socket());
  const ctx = new Koa().createContext(request, new ServerResponse(request));
  ctx.state['visitor'] = { account_id };
  return ctx;
}

/** Calls, and those that were answered; what waits is answered by `pass`. */
function setup() {
  const waits: (() => void)[] = [];
  const delay = delayRefusals(undefined, () => new Promise((resolve) => waits.push(resolve)));
  const answered: string[] = [];
  const call = async (account: string, status = 429) => {
    const ctx = callOf(account);
    await delay(ctx, async () => {
      ctx.status = status;
    });
    answered.push(account);
  };
  const calls = (account: string, count: number, status?: number) =>
    Array.from({ length: count }, () => call(account, status));
  const pass = () => {
    for (const answer of waits.splice(0)) answer();
  };
  return { answered, calls, pass };
}

test('who goes on although refused is answered a second late, and nobody else', async () => {
  const { answered, calls, pass } = setup();
  const hostile = calls('hostile', AT_ONCE + 3);
  await Promise.all([...calls('other', AT_ONCE, 503), ...calls('hostile', 100, 201)]);
  expect(answered.filter((account) => account === 'other')).toHaveLength(AT_ONCE);
  expect(answered).toHaveLength(2 * AT_ONCE + 100);
  pass();
  await Promise.all(hostile);
  expect(answered).toHaveLength(2 * AT_ONCE + 103);
});

test('those without an account wait longer', async () => {
  const waits: number[] = [];
  const delay = delayRefusals(undefined, async (ms) => void waits.push(ms));
  for (const account_id of ['hostile', undefined]) {
    for (let n = 0; n <= AT_ONCE; n += 1) {
      const ctx = callOf(account_id);
      await delay(ctx, async () => {
        ctx.status = 429;
      });
    }
  }
  expect(waits).toEqual([1_000, 3_000]);
});

test('the waits end when the process stops', async () => {
  const stopping = new AbortController();
  const delay = delayRefusals(stopping.signal);
  const refuse = async (ctx: Context) => {
    await delay(ctx, async () => {
      ctx.status = 503;
    });
  };
  // A stall of the machine delays this timer as well, so that the order still shows an early end.
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
  }, EARLY_MS);
  const refused = Array.from({ length: AT_ONCE + 1 }, () => refuse(callOf('hostile')));
  await Promise.all(refused.slice(0, AT_ONCE));
  stopping.abort();
  await Promise.all(refused);
  clearTimeout(timer);
  expect(isLate).toBe(false);
});

test('more than two thousand do not wait', async () => {
  const { answered, calls, pass } = setup();
  const hostile = calls('hostile', AT_ONCE + 2_000 + 7);
  await Promise.all(hostile.slice(0, AT_ONCE));
  await Promise.all(hostile.slice(-7));
  expect(answered).toHaveLength(AT_ONCE + 7);
  pass();
  await Promise.all(hostile);
});
