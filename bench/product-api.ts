import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';
import type { SlowCreates } from './subject';

/**
 * Statuses of an unknown outcome or of a first call still under way, which the same key settles.
 */
const REPEATABLE = new Set([409, 503]);
const REPEAT_MS = 1_000;
const ATTEMPTS_MAX = 10;

/**
 * The product's API as merchants call it.
 * @param apiKeys keys of merchants, who take turns
 */
export function createProductApi(url: string, apiKeys: readonly string[], concurrency: number) {
  const pool = new Pool(url, { connections: concurrency });
  const slow: SlowCreates = { asked_again: 0, answered_created: 0 };
  let turn = 0;
  const send = async (apiKey: string, path: string, body: unknown, idempotencyKey: string) => {
    const { statusCode, body: answer } = await pool.request({
      method: 'POST',
      path,
      headers: {
        authorization: `Bearer ${apiKey}`,
        'content-type': 'application/json',
        'idempotency-key': idempotencyKey,
      },
      body: JSON.stringify(body),
    });
    return { status: statusCode, text: await answer.text() };
  };
  return {
    slow,
    /**
     * Creates a resource and returns the body of its 201.
     * @throws Error on any other answer, but for those that say *again*
     */
    create: async (path: string, body: unknown): Promise<unknown> => {
      const idempotencyKey = randomUUID();
      const apiKey = apiKeys[turn % apiKeys.length] ?? '';
      turn += 1;
      for (let attempt = 1; ; attempt += 1) {
        const { status, text } = await send(apiKey, path, body, idempotencyKey);
        if (status === 201) return JSON.parse(text);
        if (!REPEATABLE.has(status) || attempt === ATTEMPTS_MAX) {
          throw new Error(`POST ${path} answered ${status}: ${text}`);
        }
        slow.asked_again += 1;
        await sleep(REPEAT_MS);
      }
    },
    close: () => pool.close(),
  };
}
