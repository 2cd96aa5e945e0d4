import { createClient } from '../client';
import { PaymentsError } from '../errors';

/** Options of every command, for `parseArgs`. */
export const CONNECTION = {
  key: { type: 'string' },
  'base-url': { type: 'string' },
} as const;

export const CONNECTION_HELP = `  --key KEY          API key, sk_sandbox_…; else DURABLE_PAYMENTS_KEY. Other users of this machine
                     see arguments of commands, and not the environment.
  --base-url URL     the installation; else DURABLE_PAYMENTS_URL, else http://localhost:8080
`;

const LOCAL = 'http://localhost:8080';

/** Reads where to connect from the options or the environment. @throws PaymentsError without a key */
export function readConnection(values: { key?: string; 'base-url'?: string }) {
  const apiKey = values.key ?? process.env['DURABLE_PAYMENTS_KEY'];
  const baseUrl = values['base-url'] ?? process.env['DURABLE_PAYMENTS_URL'] ?? LOCAL;
  if (!apiKey) throw new PaymentsError('Name an API key: --key, or DURABLE_PAYMENTS_KEY.');
  if (!apiKey.startsWith('sk_sandbox_')) {
    throw new PaymentsError(
      'This takes a sandbox key, sk_sandbox_…: live events are not for tests.',
    );
  }
  return { apiKey, baseUrl, client: createClient({ apiKey, baseUrl }) };
}
