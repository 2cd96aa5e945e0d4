import { join } from 'node:path';
import { z } from 'zod';
import { runCommand } from '../stack/provision/command';
import type { Receiver } from './receiver';

const CLI = join(__dirname, '..', 'src', 'cli', 'main.js');
const CLI_MS_MAX = 60_000;

const NewAccount = z.object({ account_id: z.string(), sandbox_key: z.string() });
const Endpoint = z.object({ signing_secret: z.string() });

/** Merchant of the product, whose sandbox events go to an endpoint of the receiver. */
export interface Merchant {
  account_id: string;
  apiKey: string;
}

/** Opens a merchant's account with the product's command line. */
export async function openAccount(
  env: NodeJS.ProcessEnv,
  receiver: Receiver,
  signal: AbortSignal,
): Promise<Merchant> {
  const { url, setSecret } = receiver.endpoint();
  const cli = async (...args: string[]): Promise<unknown> => {
    const options = { env, timeoutMs: CLI_MS_MAX, signal };
    return JSON.parse(await runCommand(process.execPath, [CLI, ...args, '--json'], options));
  };
  const account = NewAccount.parse(await cli('account', 'create', '--name', 'Benchmark'));
  const { account_id, sandbox_key } = account;
  const endpoint = Endpoint.parse(
    await cli('webhook', 'set', account_id, '--env', 'sandbox', '--url', url),
  );
  setSecret(endpoint.signing_secret);
  return { account_id, apiKey: sandbox_key };
}
