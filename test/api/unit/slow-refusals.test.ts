import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import Koa from 'koa';
import { createFailureLimit, delayRefusals } from '../../../src/api/rate-limit';
import { Refusal } from '../../../src/domain/errors';
import { inOneWindow } from '../window';

const AT_ONCE = 5;
/** Half of the wait. */
const EARLY_MS = 1_500;

function buildCall(state: object) {
  const request = new IncomingMessage(new Socket());
  const ctx = new Koa().createContext(request, new ServerResponse(request));
  return Object.assign(ctx, { state });
}

/** Sends calls, and lists those that are answered; `pass` answers those that wait. */
function setup(wait?: Parameters<typeof delayRefusals>[1], stopping?: AbortSignal) {
  const waits: (() => void)[] = [];
  const queue = () => new Promise<void>((resolve) => waits.push(resolve));
  const delay = delayRefusals(stopping, stopping === undefined ? (wait ?? queue) : undefined);
  const answered: (string | undefined)[] = [];
  const call = async (account_id: string | undefined, status = 429) => {
    const ctx = buildCall({ visitor: { account_id } });
    await delay(ctx, async () => {
      ctx.status = status;
    });
    answered.push(account_id);
  };
  const calls = (account: string | undefined, count: number, status?: number) =>
    Array.from({ length: count }, () => call(account, status));
  const pass = () => {
    for (const answer of waits.splice(0)) answer();
  };
  return { answered, calls, pass };
}

test('an account with many refused calls gets its next refusals later, and no other account does', async () => {
  const { answered, calls, pass } = setup();
  const hostile = calls('hostile', AT_ONCE + 3);
  await Promise.all([...calls('other', AT_ONCE, 503), ...calls('hostile', 100, 201)]);
  expect(answered.filter((account) => account === 'other')).toHaveLength(AT_ONCE);
  expect(answered).toHaveLength(2 * AT_ONCE + 100);
  pass();
  await Promise.all(hostile);
  expect(answered).toHaveLength(2 * AT_ONCE + 103);
});

test('callers without an account wait as long', async () => {
  const waits: number[] = [];
  const { calls } = setup(async (ms) => void waits.push(ms));
  for (const account of ['hostile', undefined]) await Promise.all(calls(account, AT_ONCE + 1));
  expect(waits).toEqual([3_000, 3_000]);
});

test('the waits end when the process stops', async () => {
  const stopping = new AbortController();
  const { calls } = setup(undefined, stopping.signal);
  // A stall of the machine delays this timer as well, so that the order still shows an early end.
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
  }, EARLY_MS);
  const refused = calls('hostile', AT_ONCE + 1, 503);
  await Promise.all(refused.slice(0, AT_ONCE));
  stopping.abort();
  await Promise.all(refused);
  clearTimeout(timer);
  expect(isLate).toBe(false);
});

test('at most two thousand calls wait', async () => {
  const { answered, calls, pass } = setup();
  const hostile = calls('hostile', AT_ONCE + 2_000 + 7);
  await Promise.all(hostile.slice(0, AT_ONCE));
  await Promise.all(hostile.slice(-7));
  expect(answered).toHaveLength(AT_ONCE + 7);
  pass();
  await Promise.all(hostile);
});

test(
  'an address that tries a thousand wrong keys is refused until the reset, and valid keys are not',
  inOneWindow(async () => {
    const look = jest.fn(async () => 'a valid key');
    const wrong = async () => {
      throw new Refusal('api_key_invalid', 'No such key.');
    };
    const limit = createFailureLimit();
    const guarded = (address: string, who: string, find: () => Promise<string>) =>
      limit(buildCall({ address }), who, find);
    await guarded('192.0.2.1', 'merchant', look);
    const invalid = { code: 'api_key_invalid' };
    for (let tried = 0; tried < 1_000; tried += 1) {
      await expect(guarded('192.0.2.1', 'unknown', wrong)).rejects.toMatchObject(invalid);
    }
    const ctx = buildCall({ address: '192.0.2.1' });
    await expect(limit(ctx, 'unknown', look)).rejects.toMatchObject({ code: 'rate_limited' });
    expect(ctx.response.headers).toMatchObject({
      'ratelimit-limit': '1000',
      'ratelimit-remaining': '0',
      'ratelimit-reset': expect.stringMatching(/^([1-9]|10)$/),
    });
    expect(ctx.response.get('Retry-After')).toBe(ctx.response.get('RateLimit-Reset'));
    expect(look).toHaveBeenCalledTimes(1);
    expect(await guarded('192.0.2.1', 'merchant', look)).toBe('a valid key');
    await expect(guarded('192.0.2.2', 'unknown', wrong)).rejects.toMatchObject(invalid);
  }),
);
