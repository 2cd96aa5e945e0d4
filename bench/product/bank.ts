import { randomUUID } from 'node:crypto';
import { Pool } from 'undici';
import { z } from 'zod';
import { SANDBOX_CONNECTOR } from '../../src/routing';
import { signPayload } from '../../src/webhooks/attempt';
import { runCli } from '../measure/cli';
import type { Setting } from '../servers/config';

const NewKey = z.object({ secret: z.string() });
const Receipt = z.object({ status: z.literal('delivered') });

export interface BankKey {
  connector: string;
  secret: string;
}

/** Creates a key of the sandbox's connector. */
export async function createBankKey(env: NodeJS.ProcessEnv, setting: Setting): Promise<BankKey> {
  const connector = SANDBOX_CONNECTOR;
  const create = ['connector', 'key', 'create', connector] as const;
  const { secret } = await runCli(create, NewKey, env, setting);
  return { connector, secret };
}

/**
 * Reports as a bank's server does: over HTTP, signed.
 * @see docs/connectors.md#callbacks-over-http
 */
export function createBank(url: string, { connector, secret }: BankKey, connections: number) {
  const pool = new Pool(url, { connections });
  return {
    /** @throws Error unless the callback was delivered at once */
    report: async (resource: string, resource_id: string, event: string): Promise<void> => {
      const facts = { callback_id: `cb_${randomUUID()}`, occurred_at: new Date().toISOString() };
      const body = JSON.stringify({ resource, resource_id, event, ...facts });
      const response = await pool.request({
        ...{ method: 'POST', path: `/connectors/${connector}/callbacks`, body },
        headers: {
          'content-type': 'application/json',
          'connector-signature': signPayload(secret, body, Math.floor(Date.now() / 1_000)),
        },
      });
      const text = await response.body.text();
      if (response.statusCode === 202 && Receipt.safeParse(JSON.parse(text)).success) return;
      throw new Error(`callback ${resource}.${event}: ${response.statusCode} ${text}`);
    },
    close: () => pool.close(),
  };
}
