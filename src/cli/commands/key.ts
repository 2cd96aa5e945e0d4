import { type Command, InvalidArgumentError } from 'commander';
import { SCOPES, type Scope } from '../../domain/api-key';
import { defined } from '../../domain/defined';
import { type Env, envOf, isLive } from '../../domain/environment';
import { createKey, revokeKey } from '../../merchants/api-keys';
import { parseCidr } from '../../networks';
import { findAccount } from '../account';
import type { CliContext } from '../context';
import { CliFailure } from '../failure';
import { envOption, parseCursor, parseScopes } from '../options';
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
  {"key_id", "key"}
  npm run -s cli -- key create acct_… --env live --expires-at 2027-01-01T00:00:00Z \\
    --allow-cidr 203.0.113.0/24`,
};

interface CreateOptions {
  env: Env;
  scopes?: Scope[];
  expiresAt?: string;
  allowCidr?: string[];
}

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
    .option('--expires-at <time>', 'when it ends by itself', parseCursor)
    .option('--allow-cidr <cidr>', 'network that it may be used from (repeatable)', collectCidr)
    .addHelpText('after', EXAMPLES.create)
    .action((id: string, options: CreateOptions) => create(context, id, options));
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
  { env, scopes = [...SCOPES], expiresAt, allowCidr: allowed_cidrs }: CreateOptions,
): Promise<void> {
  const expires_at = expiresAt && new Date(expiresAt).toISOString();
  if (expires_at !== undefined && expires_at <= context.now().toISOString()) {
    throw new CliFailure('invalid_usage', '--expires-at has to be in the future.');
  }
  const acting = await context.acting();
  const { _id: account_id } = await findAccount(acting.stores, accountId);
  const bounds = { expires_at, allowed_cidrs };
  const made = await createKey(acting, { account_id, livemode: isLive(env), scopes, ...bounds });
  const text = fields([
    ['Key id', made.key_id],
    ['Key', made.key],
    ['Scopes', scopes.join(', ')],
    ...(expires_at === undefined ? [] : ([['Expires', when(expires_at)]] as const)),
    ...(allowed_cidrs === undefined ? [] : ([['Only from', allowed_cidrs.join(', ')]] as const)),
  ]);
  const note = 'The key is not stored and not shown again: keep it now.';
  context.print({ json: made, text: `${text}\n\n${note}` });
}

async function list(context: CliContext, accountId: string): Promise<void> {
  const stores = await context.stores();
  const account = await findAccount(stores, accountId);
  const keys = await stores.keys.forAccount(account._id);
  const data = keys.map(
    ({ _id, livemode, last4, scopes, created_at, last_used_at, revoked_at, ...bounds }) => ({
      key_id: _id,
      env: envOf(livemode),
      last4,
      scopes,
      created_at,
      last_used_at,
      revoked_at,
      ...defined({ expires_at: bounds.expires_at, allowed_cidrs: bounds.allowed_cidrs }),
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

function collectCidr(text: string, before: string[] = []): string[] {
  if (parseCidr(text) !== undefined) return [...before, text];
  throw new InvalidArgumentError('It must be a network, such as 203.0.113.0/24 or 2001:db8::/32.');
}
