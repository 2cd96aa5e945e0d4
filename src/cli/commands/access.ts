import { z } from 'zod';
import { parseCidr } from '../../base/networks';
import { omitUndefined } from '../../domain/defined';
import { toEnv } from '../../domain/environment';
import { ServiceError } from '../../domain/errors';
import { SCOPES } from '../../domain/merchants/api-key';
import { ROLES } from '../../domain/merchants/dashboard-role';
import { findAccount } from '../../service/merchants/accounts';
import { createKey, listKeys, revokeKey } from '../../service/merchants/keys';
import { invite as inviteUser, listTeam } from '../../service/merchants/team/members';
import { resetPassword } from '../../service/merchants/team/sessions';
import { unlockUser } from '../../service/merchants/team/sign-in';
import { withAuthority } from '../acting-operator';
import { defineCommand, defineGroup } from '../command';
import { findOwner } from '../context';
import {
  AccountId,
  APPROVED,
  APPROVED_NOTE,
  Email,
  Id,
  idOption,
  names,
  OWNER,
  Time,
} from '../options';
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
    ...OWNER,
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
    ...APPROVED,
  }),
  notes: `Scopes: ${SCOPES.join(', ')}\n${APPROVED_NOTE}`,
  example: 'key create acct_… --env live --scopes payments:read,refunds:read',
  run: async (context, { account_id, env, scopes = [...SCOPES], ...options }) => {
    const { allow_cidr: allowed_cidrs, operation_id, reason } = options;
    const expires_at = options.expires_at && new Date(options.expires_at).toISOString();
    if (expires_at !== undefined && expires_at <= context.now().toISOString()) {
      throw new ServiceError('invalid_usage', '--expires-at has to be in the future.');
    }
    const owner = await findOwner(context, { account_id, env });
    const bounds = { scopes, expires_at, allowed_cidrs };
    const input = { account_id, ...bounds };
    const call = { isNeeded: owner.livemode, account_id, input, operation_id, reason };
    await withAuthority(context, 'key create', call, async (deps, part) => {
      const key = await createKey(deps, { ...owner, ...bounds, id: `key_${part}` });
      const note = 'The key is not stored and not shown again: save it now.';
      printFields(context, { json: key, note }, [
        ['Key id', key.key_id],
        ['Key', key.key],
        ['Scopes', scopes.join(', ')],
        ['Expires', expires_at && formatTime(expires_at)],
        ['Only from', allowed_cidrs?.join(', ')],
      ]);
    });
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
      columns: {
        KEY: 'key_id',
        ENV: 'env',
        ENDS: ({ last4 }) => `…${last4}`,
        CREATED: 'created_at',
        'LAST USED': ({ last_used_at: at }) => (at === null ? 'never' : formatTime(at)),
        REVOKED: 'revoked_at',
        SCOPES: ({ scopes }) => (scopes.length === SCOPES.length ? 'all' : scopes.join(',')),
      },
      none: 'This account has no keys.',
    });
  },
});

const revoke = defineCommand({
  name: 'revoke',
  description: 'revoke a key at once; again changes nothing',
  options: z.object({ key_id: Id.meta({ argument: true }) }),
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

const invite = defineCommand({
  name: 'invite',
  description: 'create a link by which a user joins the team of an account',
  options: z.object({
    account_id: AccountId,
    email: Email.describe('login of the user'),
    role: z.enum(ROLES).describe('what the user may do'),
    ...APPROVED,
  }),
  notes: `
The link works once, and for three days. With a mail server, another one is sent to the address; without,
pass it on yourself. With --role owner: ${APPROVED_NOTE}`,
  example: 'dashboard invite acct_… --email ana@example.com --role developer',
  run: async (context, { account_id, email, role, operation_id, reason }) => {
    const { stores } = await context.readDeps();
    await findAccount(stores, account_id);
    const input = { account_id, email, role };
    const call = { isNeeded: role === 'owner', account_id, input, operation_id, reason };
    await withAuthority(context, 'dashboard invite', call, async (deps) => {
      const { token, expires_at } = await inviteUser(deps, { ...input, invited_by: null });
      const link = `${context.settings().publicUrl}/dashboard/invitation/${token}`;
      const expires = expires_at.toISOString();
      const note = 'The link is not stored and not shown again: pass it on now.';
      printFields(context, { json: { link, expires_at: expires }, note }, [
        ['Link', link],
        ['Expires', formatTime(expires)],
      ]);
    });
  },
});

const team = defineCommand({
  name: 'people',
  description: 'list the team of an account, oldest first',
  options: z.object({ account_id: AccountId }),
  example: 'dashboard people acct_…',
  run: async (context, { account_id }) => {
    const deps = await context.readDeps();
    await findAccount(deps.stores, account_id);
    const { members } = await listTeam(deps, account_id);
    printList(context, {
      rows: members,
      present: (member) => ({
        user_id: member.id,
        email: member.email,
        role: member.role,
        second_factor: member.has_second_factor,
        created_at: member.created_at,
        signed_in_at: member.signed_in_at,
      }),
      columns: {
        'E-MAIL': 'email',
        ROLE: 'role',
        'SECOND FACTOR': ({ second_factor }) => (second_factor ? 'on' : 'off'),
        'LAST SIGNED IN': ({ signed_in_at: at }) => (at === null ? 'never' : formatTime(at)),
      },
      none: 'Nobody has signed in yet.',
    });
  },
});

const reset = defineCommand({
  name: 'reset-password',
  description: 'give a user who is locked out a new password, and end all sessions',
  options: z.object({
    email: z.string().meta({ argument: true }),
    account: idOption('whose user it is, if several have the address').optional(),
    without_second_factor: z
      .boolean()
      .default(false)
      .describe('also switch off a lost factor, and remove passkeys'),
    ...APPROVED,
  }),
  notes: `
Verify the request first: the new password is enough to sign in, once, within 24 hours, which asks for
another one. With --without-second-factor: ${APPROVED_NOTE}`,
  example: 'dashboard reset-password ana@example.com',
  run: async (context, { email, account, operation_id, reason, ...options }) => {
    const { without_second_factor: dropSecondFactor } = options;
    const request = { email, account_id: account, dropSecondFactor };
    const input = { email, account };
    const about = { account_id: account ?? null, input, operation_id, reason };
    const call = { isNeeded: dropSecondFactor, ...about };
    await withAuthority(context, 'dashboard reset-password', call, async (deps) => {
      const password = await resetPassword(deps, request);
      if (password === null) {
        throw new ServiceError('user_not_found', `There is no login ${email}.`);
      }
      const json = { email: email.toLowerCase(), password };
      const note = 'The password is not stored and not shown again: save it now.';
      printFields(context, { json, note }, [
        ['E-mail', json.email],
        ['Password', password],
      ]);
    });
  },
});

const unlock = defineCommand({
  name: 'unlock',
  description: 'clear the wrong passwords and codes that keep a user out',
  options: z.object({ email: z.string().meta({ argument: true }) }),
  example: 'dashboard unlock ana@example.com',
  run: async (context, { email }) => {
    const isKnown = await unlockUser(await context.actingDeps(), email);
    if (!isKnown) throw new ServiceError('user_not_found', `There is no login ${email}.`);
    printFields(context, { json: { email: email.toLowerCase(), unlocked: true } }, [
      ['E-mail', email.toLowerCase()],
      ['Unlocked', 'yes: sign-in may be tried again'],
    ]);
  },
});

export const dashboardCommands = defineGroup({
  name: 'dashboard',
  description: "users who sign in to a merchant's dashboard",
  commands: [invite, team, reset, unlock],
});
