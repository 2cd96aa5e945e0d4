import { parseDuration } from '../../src/domain/account/clock-request';
import { eventually } from '../support/http';
import type { Account } from '../support/service';

export type Merchant = Pick<Account, 'get' | 'post'>;

const PATH = '/v1/sandbox/clock';

export const SECOND_MS = 1_000;
export const DAY_MS = 86_400_000;

/** Waits until the clock of the account stands, at a time or later. */
export async function standing(merchant: Merchant, from = ''): Promise<Record<string, unknown>> {
  return await eventually('the clock stands', async () => {
    const { body } = await merchant.get(PATH);
    return body['state'] === 'standing' && body['now'] >= from && body;
  });
}

/** Moves the clock once, also on a busy machine. @returns the clock when it stands again */
export async function sendClock(merchant: Merchant, body: Record<string, string>) {
  const { now } = (await merchant.get(PATH)).body;
  const answer = await merchant.post(PATH, body, { idempotencyKey: null, once: true });
  if (answer.status !== 503) {
    expect(answer.status).toBe(202);
    const clock = await standing(merchant);
    expect(String(clock['now']) >= answer.body.target).toBe(true);
    return clock;
  }
  // It may have been taken, or still be: a repeat to the same time changes nothing then.
  const by_ms = parseDuration(body['advance'] ?? '') ?? 0;
  const to = body['to'] ?? new Date(Date.parse(now) + by_ms).toISOString();
  const { status } = await merchant.post(PATH, { to }, { idempotencyKey: null });
  expect([202, 400, 409]).toContain(status);
  return await standing(merchant, to);
}

/** Moves the clock, and waits until it stands where it was sent. */
export async function advance(merchant: Merchant, body: Record<string, string>): Promise<void> {
  expect(await sendClock(merchant, body)).toMatchObject({ target: null, behind: [] });
}

/** Ms between two times of the account. */
export function between(from: string, to: string): number {
  return Date.parse(to) - Date.parse(from);
}
