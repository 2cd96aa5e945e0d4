import type { Command } from 'commander';
import { SCOPES, type Scope } from '../../domain/api-key';
import { type Env, envOf, isLive } from '../../domain/environment';
import { createKey, revokeKey } from '../../merchants/api-keys';
import { findAccount } from '../account';
import type { CliContext } from '../context';
import { CliFailure } from '../failure';
import { envOption, parseScopes } from '../options';
import { fields, table, when } from '../output';

const EXAMPLES = {
  group: `
Examples:
  npm run -s cli -- key create acct_… --env sandbox
  npm run -s cli -- key list acct_…
  npm run -s cli -- key revoke key_…`,
  create: `
Scopes: ${SCOPES.join(', ')}

Example:
  npm run -s cli -- key create acct_… --env live --scopes payments:read,refunds:read --json
  {"key_id", "key"}`,
};

export function addKeyCommands(program: Command, context: CliContext): void {
  const group = program
    .command('key')
    .description('API keys: several per environment, each shown once')
    .addHelpText('after', EXAMPLES.group);
  group
    .command('create')
    .description('make a key and show it once')
    .argument('<account_id>')
    .addOption(envOption())
    .option('--scopes <a,b>', 'what the key may do (default: everything)', parseScopes)
    .addHelpText('after', EXAMPLES.create)
    .action((id: string, options: { env: Env; scopes?: Scope[] }) => create(context, id, options));
  group
    .command('list')
    .description('list the keys of an account, oldest first, without their secrets')
    .argument('<account_id>')
    .action((id: string) => list(context, id));
  group
    .command('revoke')
    .description('end a key at once; again changes nothing')
    .argument('<key_id>')
    .action((id: string) => revoke(context, id));
}

async function create(
  context: CliContext,
  accountId: string,
  { env, scopes = [...SCOPES] }: { env: Env; scopes?: Scope[] },
): Promise<void> {
  const acting = await context.acting();
  const { _id: account_id } = await findAccount(acting.stores, accountId);
  const made = await createKey(acting, { account_id, livemode: isLive(env), scopes });
  const text = fields([
    ['Key id', made.key_id],
    ['Key', made.key],
    ['Scopes', scopes.join(', ')],
  ]);
  const note = 'The key is not stored and not shown again: keep it now.';
  context.print({ json: made, text: `${text}\n\n${note}` });
}

async function list(context: CliContext, accountId: string): Promise<void> {
  const stores = await context.stores();
  const account = await findAccount(stores, accountId);
  const keys = await stores.keys.forAccount(account._id);
  const data = keys.map(
    ({ _id, livemode, last4, scopes, created_at, last_used_at, revoked_at }) => ({
      key_id: _id,
      env: envOf(livemode),
      last4,
      scopes,
      created_at,
      last_used_at,
      revoked_at,
    }),
  );
  const rows = data.map((key) => [
    key.key_id,
    key.env,
    `…${key.last4}`,
    when(key.created_at),
    key.last_used_at === null ? 'never' : when(key.last_used_at),
    when(key.revoked_at),
    key.scopes.length === SCOPES.length ? 'all' : key.scopes.join(','),
  ]);
  const heading = ['KEY', 'ENV', 'ENDS', 'CREATED', 'LAST USED', 'REVOKED', 'SCOPES'];
  context.print({ json: { data }, text: table(heading, rows, 'This account has no keys.') });
}

async function revoke(context: CliContext, id: string): Promise<void> {
  const key = await revokeKey(await context.acting(), id);
  if (key === null || key.revoked_at === null) {
    throw new CliFailure('key_not_found', `There is no key ${id}.`);
  }
  const { revoked_at } = key;
  context.print({
    json: { key_id: id, revoked_at },
    text: `The key ${id} is revoked since ${when(revoked_at)}.`,
  });
}
