import { join } from 'node:path';
import { z } from 'zod';
import { describeError } from '../src/base/errors';
import { PROGRAM } from '../src/base/program';
import { SAMPLE_PAYMENT } from '../src/domain/wire/samples';
import { runCommand } from './provision/command';
import { readJson, replaceFile } from './state-file';

const CLI_MS_MAX = 60_000;
const CLI = join(__dirname, '..', 'src', 'cli', 'main.js');

const NewAccount = z.object({
  account_id: z.string(),
  sandbox_key: z.string(),
  live_key: z.string(),
  dashboard_email: z.string(),
  dashboard_password: z.string(),
});

/** Part of a new account that is stored, so that later starts print the same sample request. */
const StoredAccount = NewAccount.pick({
  account_id: true,
  sandbox_key: true,
  dashboard_email: true,
});
type StoredAccount = z.infer<typeof StoredAccount>;

/** Stores only the sandbox key, in `demo-account.json` (mode 0600). */
export async function demoLines(
  dataDir: string,
  baseUrl: string,
  env: NodeJS.ProcessEnv,
): Promise<string[]> {
  const path = join(dataDir, 'demo-account.json');
  const storedAccount = readJson(path, StoredAccount);
  if (storedAccount !== undefined)
    return [...loginLines(storedAccount, baseUrl), ...sampleLines(storedAccount, baseUrl)];
  try {
    const create = ['account', 'create', '--name', 'Demo', '--keep-password', '--json'];
    const args = ['--enable-source-maps', CLI, ...create];
    const output = await runCommand(process.execPath, args, { env, timeoutMs: CLI_MS_MAX });
    const account = NewAccount.parse(JSON.parse(output));
    replaceFile(path, `${JSON.stringify(StoredAccount.parse(account), null, 2)}\n`);
    return [
      'Demo account, shown this once:',
      `  account        ${account.account_id}`,
      `  sandbox key    ${account.sandbox_key}`,
      `  live key       ${account.live_key}`,
      `  dashboard      ${baseUrl}/dashboard`,
      `    e-mail       ${account.dashboard_email}`,
      `    password     ${account.dashboard_password}`,
      '',
      ...sampleLines(account, baseUrl),
    ];
  } catch (error) {
    return [
      `The demo account could not be made: ${describeError(error)}`,
      `Try it by hand: ${PROGRAM.cli} account create --name Demo`,
    ];
  }
}

function loginLines({ dashboard_email }: StoredAccount, baseUrl: string): string[] {
  return [
    `Dashboard: ${baseUrl}/dashboard, e-mail ${dashboard_email}. Is the password of the first start lost?`,
    `${PROGRAM.cli} dashboard reset-password ${dashboard_email}`,
    '',
  ];
}

function sampleLines({ account_id, sandbox_key }: StoredAccount, baseUrl: string): string[] {
  const body = JSON.stringify(SAMPLE_PAYMENT);
  return [
    `Docs: ${baseUrl}/docs/`,
    '',
    'Make a payment (paste it):',
    `curl -sS ${baseUrl}/v1/payments -H 'Authorization: Bearer ${sandbox_key}'` +
      ` -H 'Content-Type: application/json' -H "Idempotency-Key: demo-$(date +%s)" -d '${body}'`,
    '',
    'Have its events sent to you:',
    `${PROGRAM.cli} webhook set ${account_id} --env sandbox` +
      ' --url http://localhost:9000/webhooks',
  ];
}
