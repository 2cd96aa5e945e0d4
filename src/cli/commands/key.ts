import { z } from 'zod';
import { parseCidr } from '../../base/networks';
import { SCOPES } from '../../domain/account/api-key';
import { omitUndefined } from '../../domain/defined';
import { isLive, toEnv } from '../../domain/environment';
import { ServiceError } from '../../domain/errors';
import { findAccount } from '../../service/merchants/accounts';
import { createKey, listKeys, revokeKey } from '../../service/merchants/keys';
import { defineCommand, defineGroup } from '../command';
import { AccountId, Env, names, Time } from '../options';
import { formatTime, printFields, printList } from '../output';

const Cidr = z
  .string()
  .refine(
    (text) => parseCidr(text) !== undefined,
    'It must be a network, such as 203.0.113.0/24 or 2001:db8::/32.',
  );

const create = defineCommand({
  name: 'create',
  description: 'create a key, and show it once',
  options: z.object({
    account_id: AccountId,
    env: Env,
    scopes: names(SCOPES)
      .optional()
      .describe('what the key may do (default: everything)')
      .meta({ placeholder: 'a,b' }),
    expires_at: Time.optional().describe('when it expires'),
    allow_cidr: z
      .array(Cidr)
      .optional()
      .describe('network that it may be used from')
      .meta({ placeholder: 'cidr' }),
  }),
  notes: `Scopes: ${SCOPES.join(', ')}`,
  example: 'key create acct_… --env live --scopes payments:read,refunds:read',
  run: async (context, { account_id, env, scopes = [...SCOPES], ...options }) => {
    const { allow_cidr: allowed_cidrs } = options;
    const expires_at = options.expires_at && new Date(options.expires_at).toISOString();
    if (expires_at !== undefined && expires_at <= context.now().toISOString()) {
      throw new ServiceError('invalid_usage', '--expires-at has to be in the future.');
    }
    const deps = await context.actingDeps();
    await findAccount(deps.stores, account_id);
    const bounds = { scopes, expires_at, allowed_cidrs };
    const owner = { account_id, livemode: isLive(env) };
    const key = await createKey(deps, { ...owner, ...bounds });
    const note = 'The key is not stored and not shown again: save it now.';
    printFields(context, { json: key, note }, [
      ['Key id', key.key_id],
      ['Key', key.key],
      ['Scopes', scopes.join(', ')],
      ['Expires', expires_at && formatTime(expires_at)],
      ['Only from', allowed_cidrs?.join(', ')],
    ]);
  },
});

const list = defineCommand({
  name: 'list',
  description: 'list the keys of an account, oldest first, without their secrets',
  options: z.object({ account_id: AccountId }),
  example: 'key list acct_…',
  run: async (context, { account_id }) => {
    const { stores } = await context.readDeps();
    await findAccount(stores, account_id);
    const keys = await listKeys({ stores }, { account_id });
    printList(context, {
      rows: keys.toReversed(),
      present: ({ _id: key_id, livemode, last4, scopes, created_at, ...key }) => ({
        key_id,
        env: toEnv(livemode),
        last4,
        scopes,
        created_at,
        last_used_at: key.last_used_at,
        revoked_at: key.revoked_at,
        ...omitUndefined({ expires_at: key.expires_at, allowed_cidrs: key.allowed_cidrs }),
      }),
      columns: ['KEY', 'ENV', 'ENDS', 'CREATED', 'LAST USED', 'REVOKED', 'SCOPES'],
      cells: (key) => [
        key.key_id,
        key.env,
        `…${key.last4}`,
        formatTime(key.created_at),
        key.last_used_at === null ? 'never' : formatTime(key.last_used_at),
        formatTime(key.revoked_at),
        key.scopes.length === SCOPES.length ? 'all' : key.scopes.join(','),
      ],
      none: 'This account has no keys.',
    });
  },
});

const revoke = defineCommand({
  name: 'revoke',
  description: 'revoke a key at once; again changes nothing',
  options: z.object({ key_id: z.string().meta({ argument: true }) }),
  example: 'key revoke key_…',
  run: async (context, { key_id }) => {
    const { revoked_at = null } = (await revokeKey(await context.actingDeps(), key_id)) ?? {};
    if (revoked_at === null) throw new ServiceError('key_not_found', `There is no key ${key_id}.`);
    const text = `The key ${key_id} is revoked since ${formatTime(revoked_at)}.`;
    context.print({ json: { key_id, revoked_at }, text });
  },
});

export const keyCommands = defineGroup({
  name: 'key',
  description: 'API keys: several per environment, each shown once',
  commands: [create, list, revoke],
});
