import { parseDuration } from '../../src/domain/merchants/clock-request';
import { eventually } from '../support/eventually';
import type { Account } from '../support/service';

export type Merchant = Pick<Account, 'get' | 'post'>;

const PATH = '/v1/sandbox/clock';

export const SECOND_MS = 1_000;
export const DAY_MS = 86_400_000;

/** The clock itself waits for up to 20 s at each stop, and for what fails it has several. */
const STOPPED_MS_MAX = 90_000;

/** Waits until the clock of the account no longer advances, and is at a time or later. */
export async function untilStopped(
  merchant: Merchant,
  from = '',
  msMax = STOPPED_MS_MAX,
): Promise<Record<string, unknown>> {
  const read = async () => {
    const { body } = await merchant.get(PATH);
    return body['state'] === 'standing' && body['now'] >= from && body;
  };
  return await eventually('the clock to stop', read, msMax);
}

/** Advances the clock once, also on a busy machine. @returns the clock when it has stopped */
export async function sendClock(merchant: Merchant, body: Record<string, string>) {
  const { now } = (await merchant.get(PATH)).body;
  const answer = await merchant.post(PATH, body, { idempotencyKey: null, once: true });
  if (answer.status !== 503) {
    expect(answer.status).toBe(202);
    const clock = await untilStopped(merchant);
    expect(String(clock['now']) >= answer.body.target).toBe(true);
    return clock;
  }
  // It may have been taken, or still be: a repeat to the same time changes nothing then.
  const by_ms = parseDuration(body['advance'] ?? '') ?? 0;
  const to = body['to'] ?? new Date(Date.parse(now) + by_ms).toISOString();
  const { status } = await merchant.post(PATH, { to }, { idempotencyKey: null });
  expect([202, 400, 409]).toContain(status);
  return await untilStopped(merchant, to);
}

/**
 * Advances the clock, and waits until it is where it was sent.
 * @throws ClockBehind: see `repeatIfBehind`
 */
export async function advance(merchant: Merchant, body: Record<string, string>): Promise<void> {
  const began = Date.now();
  const clock = await sendClock(merchant, body);
  // It gives up waiting after 20 s at a stop, and never before.
  if (Date.now() - began >= STOP_MS) assertNoneBehind(clock);
  expect(clock).toMatchObject({ target: null, behind: [] });
}

/** The clock has passed workflows that were still due. */
class ClockBehind extends Error {
  override readonly name = 'ClockBehind';
}

/** @throws ClockBehind */
export function assertNoneBehind({ behind }: Record<string, unknown>): void {
  const ids = Array.isArray(behind) ? behind : [];
  if (ids.length > 0) throw new ClockBehind(`The clock did not wait for ${ids.join(', ')}.`);
}

/** Wait of the clock at each stop. */
const STOP_MS = 20_000;

/** Leaves time for one more try before the time of a test ends. */
const REPEAT_MS_MAX = 120_000;

/**
 * Repeats a test, with a new merchant, whose clock did not wait for a workflow: the wait at a stop
 * is limited, and a busy machine may need longer.
 */
export function repeatIfBehind(work: () => Promise<void>): () => Promise<void> {
  return async () => {
    const giveUpAt = Date.now() + REPEAT_MS_MAX;
    for (;;) {
      try {
        return await work();
      } catch (error) {
        if (!(error instanceof ClockBehind) || Date.now() > giveUpAt) throw error;
      }
    }
  };
}

/** Ms between two times of the account. */
export function between(from: string, to: string): number {
  return Date.parse(to) - Date.parse(from);
}
