import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';
import { z } from 'zod';
import { runCli } from '../measure/cli';
import type { Receiver } from '../measure/receiver';
import type { Setting } from '../servers/config';

/** Statuses of an unknown outcome, or of a first call in flight, which the same key resolves. */
const RETRYABLE = new Set([409, 503]);
const RETRY_MS = 1_000;
const ATTEMPTS_MAX = 10;

/** The product's API as a merchant calls it. @param connections at most; without a limit if absent */
export function createApi(url: string, apiKey: string, connections?: number) {
  const pool = new Pool(url, { connections: connections ?? null });
  const retries = { count: 0 };
  const post = async (path: string, body: unknown, key: string = randomUUID()) => {
    const response = await pool.request({
      ...{ method: 'POST', path, body: JSON.stringify(body) },
      headers: {
        authorization: `Bearer ${apiKey}`,
        'content-type': 'application/json',
        'idempotency-key': key,
      },
    });
    return { status: response.statusCode, text: await response.body.text() };
  };
  return {
    retries,
    post,
    /**
     * Creates a resource and returns its response.
     * @throws Error on a status other than 201, unless a retry resolves it
     */
    create: async (path: string, body: unknown): Promise<unknown> => {
      const key = randomUUID();
      for (let attempt = 1; ; attempt += 1) {
        const { status, text } = await post(path, body, key);
        if (status === 201) return JSON.parse(text);
        if (!RETRYABLE.has(status) || attempt === ATTEMPTS_MAX) {
          throw new Error(`POST ${path} responded ${status}: ${text}`);
        }
        retries.count += 1;
        await sleep(RETRY_MS);
      }
    },
    close: () => pool.close(),
  };
}

const NewAccount = z.object({ account_id: z.string(), sandbox_key: z.string() });
const NewEndpoint = z.object({ signing_secret: z.string() });

export interface Merchant {
  account_id: string;
  apiKey: string;
}

export async function openAccount(
  env: NodeJS.ProcessEnv,
  receiver: Receiver,
  setting: Setting,
): Promise<Merchant> {
  const create = ['account', 'create', '--name', 'Benchmark'] as const;
  const account = await runCli(create, NewAccount, env, setting);
  const { url, setSecret } = receiver.addEndpoint();
  const set = ['webhook', 'set', account.account_id, '--env', 'sandbox', '--url', url] as const;
  setSecret((await runCli(set, NewEndpoint, env, setting)).signing_secret);
  return { account_id: account.account_id, apiKey: account.sandbox_key };
}

/** Adds endpoints to a merchant that wants every event at each. */
export async function addEndpoints(
  url: string,
  { apiKey }: Merchant,
  receiver: Receiver,
  count: number,
): Promise<void> {
  const api = createApi(url, apiKey);
  try {
    for (let n = 0; n < count; n += 1) {
      const { url: own, setSecret } = receiver.addEndpoint();
      const created = await api.create('/v1/webhook-endpoints', { url: own });
      setSecret(NewEndpoint.parse(created).signing_secret);
    }
  } finally {
    await api.close();
  }
}
