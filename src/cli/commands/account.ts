import { z } from 'zod';
import { PAYMENT_METHOD_IDS } from '../../domain/payment/catalog';
import { createAccount, findAccount, listAccounts, setFrozen } from '../../service/accounts';
import { defineCommand, defineGroup } from '../command';
import { AccountId, Email, limit, Operator, Reason } from '../options';
import { formatTime, printFields, printList } from '../output';
import { presentAccount, printAccount } from './account-output';
import { update } from './account-update';

const NAME_LENGTH_MAX = 100;

const create = defineCommand({
  name: 'create',
  description:
    'create an account with a key for each environment, test funds and a dashboard login',
  options: z.object({
    name: z
      .string()
      .trim()
      .refine(
        (name) => name !== '' && [...name].length <= NAME_LENGTH_MAX,
        `It must have 1 to ${NAME_LENGTH_MAX} characters.`,
      )
      .describe(`name of the merchant, up to ${NAME_LENGTH_MAX} characters`),
    email: Email.optional().describe('dashboard login (default: a new one)'),
    keep_password: z
      .boolean()
      .default(false)
      .describe('the login is your own: its password stays valid, as in npm start'),
  }),
  notes: 'The password is for the first sign-in, within 24 hours, which asks for another one.',
  example: 'account create --name "Acme Shop" --json',
  run: async (context, account) => {
    const json = await createAccount(await context.actingDeps(), account);
    const note = 'The keys and the password are not stored and not shown again: save them now.';
    printFields(context, { json, note }, [
      ['Account', json.account_id],
      ['Sandbox key', json.sandbox_key],
      ['Live key', json.live_key],
      ['Dashboard login', json.dashboard_email],
      ['Dashboard password', json.dashboard_password],
    ]);
  },
});

const freeze = defineCommand({
  name: 'freeze',
  description: 'limit the keys of an account to reads, and hold its payouts that no bank has yet',
  options: z.object({ account_id: AccountId, reason: Reason, operator: Operator.optional() }),
  example: 'account freeze acct_… --reason "Ticket 42: a live key leaked" --operator mia',
  run: async (context, { account_id, ...request }) => {
    const deps = await context.actingDeps();
    printAccount(context, await setFrozen(deps, account_id, { ...request, freeze: true }));
  },
});

const unfreeze = defineCommand({
  name: 'unfreeze',
  description: 'let a frozen account write again',
  options: z.object({
    account_id: AccountId,
    reason: Reason.optional(),
    operator: Operator.optional(),
  }),
  example: 'account unfreeze acct_… --reason "Ticket 42: keys changed" --operator mia',
  run: async (context, { account_id, reason = '', operator }) => {
    const request = { freeze: false, reason, operator };
    printAccount(context, await setFrozen(await context.actingDeps(), account_id, request));
  },
});

const show = defineCommand({
  name: 'show',
  description: 'show one account',
  options: z.object({ account_id: AccountId }),
  example: 'account show acct_…',
  run: async (context, { account_id }) => {
    const { stores } = await context.readDeps();
    printAccount(context, await findAccount(stores, account_id));
  },
});

const list = defineCommand({
  name: 'list',
  description: 'list the accounts, newest first',
  options: z.object({ limit: limit(1_000, 100) }),
  example: 'account list --limit 1000',
  run: async (context, options) => {
    const { stores } = await context.readDeps();
    printList(context, {
      ...(await listAccounts(stores, options.limit)),
      present: presentAccount,
      columns: ['ACCOUNT', 'CREATED', 'CRYPTO', 'METHODS', 'NAME'],
      cells: ({ account_id, created_at, crypto, enabled_methods, name }) => [
        account_id,
        formatTime(created_at),
        crypto ? 'on' : 'off',
        `${enabled_methods.length} of ${PAYMENT_METHOD_IDS.length}`,
        name,
      ],
      none: 'There are no accounts yet.',
    });
  },
});

export const accountCommands = defineGroup({
  name: 'account',
  description: 'merchants: create one, see it, change what it may use',
  commands: [create, update, freeze, unfreeze, show, list],
});
