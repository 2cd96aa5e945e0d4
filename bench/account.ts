import { join } from 'node:path';
import { z } from 'zod';
import { runCommand } from '../stack/provision/command';

const CLI = join(__dirname, '..', 'src', 'cli', 'main.js');
const CLI_MS_MAX = 60_000;

const NewAccount = z.object({ account_id: z.string(), sandbox_key: z.string() });
const Endpoint = z.object({ signing_secret: z.string() });

/**
 * Opens a merchant's account with the product's command line; its sandbox events go to
 * `webhookUrl`.
 */
export async function openAccount(
  env: NodeJS.ProcessEnv,
  webhookUrl: string,
  signal: AbortSignal,
): Promise<{ apiKey: string; signingSecret: string }> {
  const cli = async (...args: string[]): Promise<unknown> => {
    const options = { env, timeoutMs: CLI_MS_MAX, signal };
    return JSON.parse(await runCommand(process.execPath, [CLI, ...args, '--json'], options));
  };
  const account = NewAccount.parse(await cli('account', 'create', '--name', 'Benchmark'));
  const { account_id, sandbox_key } = account;
  const endpoint = Endpoint.parse(
    await cli('webhook', 'set', account_id, '--env', 'sandbox', '--url', webhookUrl),
  );
  return { apiKey: sandbox_key, signingSecret: endpoint.signing_secret };
}
