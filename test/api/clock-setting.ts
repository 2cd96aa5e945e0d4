import { eventually } from '../support/http';
import type { Account } from '../support/service';

export type Merchant = Pick<Account, 'get' | 'post'>;

export const SECOND_MS = 1_000;
export const DAY_MS = 86_400_000;

/** Waits until the clock of the account stands. */
export async function standing(merchant: Merchant): Promise<Record<string, unknown>> {
  return await eventually('the clock stands', async () => {
    const { body } = await merchant.get('/v1/sandbox/clock');
    return body['state'] === 'standing' && body;
  });
}

/** Moves the clock, and waits until it stands where it was sent. */
export async function advance(merchant: Merchant, body: Record<string, string>): Promise<void> {
  const answer = await merchant.post('/v1/sandbox/clock', body, { idempotencyKey: null });
  expect(answer.status).toBe(202);
  const clock = await standing(merchant);
  expect(clock).toMatchObject({ target: null, behind: [] });
  expect(String(clock['now']) >= answer.body.target).toBe(true);
}

/** Ms between two times of the account. */
export function between(from: string, to: string): number {
  return Date.parse(to) - Date.parse(from);
}
