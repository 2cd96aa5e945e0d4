import { z } from 'zod';
import { MONTHS_MAX, PAYER_MONTHS } from '../../domain/account/retention';
import { isCurrency } from '../../domain/currencies';
import { ServiceError } from '../../domain/errors';
import { PAYMENT_METHOD_IDS } from '../../domain/payment/catalog';
import { parseFeeName } from '../../domain/payout/fees';
import { RAIL_IDS } from '../../domain/payout/rails';
import {
  createAccount,
  findAccount,
  listAccounts,
  setFrozen,
  updateAccount,
} from '../../service/merchants/accounts';
import { defineCommand, defineGroup } from '../command';
import { AccountId, Email, limit, Operator, Reason, readBy, wholeNumber } from '../options';
import { formatTime, printFields, printList } from '../output';
import { presentAccount, printAccount } from './account-output';

const METHODS_AND_RAILS = [...PAYMENT_METHOD_IDS, ...RAIL_IDS];

const Methods = z
  .array(z.enum(METHODS_AND_RAILS, `Allowed: ${METHODS_AND_RAILS.join(', ')}.`))
  .optional()
  .meta({ placeholder: 'method' });

const FEE_FAULT =
  `It must be RAIL=MINOR, each rail once: one of ${RAIL_IDS.join(', ')}, or one in a currency that ` +
  'it pays out, as in card_payout:JPY, and an integer from 0 to 99999999999, in minor units, or off.';

const Fees = z
  .array(
    readBy((text) => {
      const { name: rail, minor } = readPair(text) ?? {};
      const name = rail === undefined ? undefined : parseFeeName(rail);
      return name === undefined || minor === undefined ? undefined : { name, fee: minor };
    }, FEE_FAULT),
  )
  .refine(isEachOnce, FEE_FAULT)
  .optional()
  .meta({ placeholder: 'rail[:currency]=minor' });

const LIMIT_FAULT =
  'It must be CURRENCY=MINOR, each currency once, with an integer from 0 to 99999999999 in minor ' +
  'units, or CURRENCY=off.';

const Limits = z
  .array(
    readBy((text) => {
      const pair = readPair(text);
      return pair !== undefined && isCurrency(pair.name) ? pair : undefined;
    }, LIMIT_FAULT),
  )
  .refine(isEachOnce, LIMIT_FAULT)
  .transform((limits) => Object.fromEntries(limits.map(({ name, minor }) => [name, minor])))
  .optional()
  .meta({ placeholder: 'currency=minor' });

function readPair(text: string): { name: string; minor: number | null } | undefined {
  const [, name, minor] = /^([^=]+)=(\d{1,11}|off)$/.exec(text) ?? [];
  if (name === undefined || minor === undefined) return undefined;
  return { name, minor: minor === 'off' ? null : Number(minor) };
}

function isEachOnce(pairs: readonly { name: string }[]): boolean {
  return new Set(pairs.map(({ name }) => name)).size === pairs.length;
}

const update = defineCommand({
  name: 'update',
  description: 'switch crypto, payment methods and payout rails on or off; set fees and limits',
  options: z.object({
    account_id: AccountId,
    crypto: z
      .enum(['on', 'off'])
      .optional()
      .meta({ description: 'crypto payments', placeholder: 'state' }),
    enable_method: Methods.describe('enable a method or rail'),
    disable_method: Methods.describe('disable a method or rail'),
    payout_fee: Fees.describe('fee of a payout over a rail, or in one of its currencies'),
    payer_data_months: wholeNumber(1, MONTHS_MAX)
      .optional()
      .describe(
        `how long names and e-mail addresses of payers are stored, 1 to ${MONTHS_MAX} months (usual: ${PAYER_MONTHS})`,
      )
      .meta({ placeholder: 'n' }),
    payout_limit: Limits.describe('most that is paid out in a day'),
    owed_limit: Limits.describe('what may be owed while payouts go on (usual: nothing)'),
    refund_step_up: Limits.describe(
      'most that one live refund in the dashboard returns without the password again (usual: any)',
    ),
  }),
  notes: `
Methods: ${PAYMENT_METHOD_IDS.join(', ')}
Rails:   ${RAIL_IDS.join(', ')}

The fee of a rail in one currency comes before that of the rail. NAME=off removes a fee or a limit. Fees
apply to payouts that are created from now on; a limit of payouts counts each day (UTC) of each
environment.`,
  example: 'account update acct_… --enable-method visa --payout-fee sepa_instant=50',
  run: async (context, { account_id, ...change }) => {
    if (Object.values(change).every((value) => value === undefined)) {
      throw new ServiceError(
        'nothing_to_change',
        'Say what to change: --crypto on|off, --enable-method METHOD, --disable-method METHOD, ' +
          '--payout-fee RAIL[:CURRENCY]=MINOR, --payout-limit CURRENCY=MINOR, ' +
          '--owed-limit CURRENCY=MINOR, --refund-step-up CURRENCY=MINOR or ' +
          '--payer-data-months N.',
      );
    }
    const { enable_method = [], disable_method = [] } = change;
    const both = enable_method.find((method) => disable_method.includes(method));
    if (both !== undefined) {
      throw new ServiceError('contradiction', `${both} can't be enabled and disabled at once.`);
    }
    printAccount(context, await updateAccount(await context.actingDeps(), account_id, change));
  },
});

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
