import { z } from 'zod';
import { NETWORKS } from '../../domain/crypto/assets';
import { omitUndefined } from '../../domain/defined';
import { ServiceError } from '../../domain/errors';
import { FEE_BEARERS } from '../../domain/merchants/acquirer-fee';
import { isCurrency } from '../../domain/money/money';
import { MONTHS_MAX, PAYER_MONTHS } from '../../domain/operators/retention';
import { PAYMENT_METHOD_IDS } from '../../domain/payment/catalog';
import { type PayoutFees, parseFeeName } from '../../domain/payout/payout';
import { RAIL_IDS } from '../../domain/payout/rails';
import {
  type AccountDocument,
  createAccount,
  findAccount,
  liftsBrake,
  listAccounts,
  setFrozen,
  updateAccount,
} from '../../service/merchants/accounts';
import { assertAddress, listWallets, setWallet } from '../../service/money/wallets';
import { withAuthority } from '../acting-operator';
import { defineCommand, defineGroup } from '../command';
import { type CliContext, findOwner } from '../context';
import {
  AccountId,
  APPROVED_HERE,
  Email,
  limit,
  NOTED,
  Operator,
  OWNER,
  Reason,
  readBy,
  wholeNumber,
} from '../options';
import { formatTime, printFields, printList } from '../output';

function presentAccount(account: AccountDocument) {
  const { frozen } = account;
  const payout_limits = dropEmpty(account.payout_limits);
  const owed_limits = dropEmpty(account.owed_limits);
  const refund_step_up = dropEmpty(account.refund_step_up);
  return {
    account_id: account._id,
    name: account.name,
    crypto: account.crypto,
    enabled_methods: PAYMENT_METHOD_IDS.filter((id) => account.enabled_methods.includes(id)),
    enabled_rails: RAIL_IDS.filter((id) => !account.disabled_rails?.includes(id)),
    payout_fees: account.payout_fees ?? {},
    payer_data_months: account.payer_data_months ?? PAYER_MONTHS,
    hold_unverified: account.hold_unverified ?? false,
    crypto_tolerance: account.crypto_tolerance ?? 0,
    acquirer_fee: account.acquirer_fee ?? 'service',
    ...omitUndefined({ payout_limits, owed_limits, refund_step_up, frozen }),
    dashboard_email: account.dashboard.email,
    created_at: account.created_at,
  };
}

function dropEmpty(limits: Record<string, number> = {}) {
  return Object.keys(limits).length === 0 ? undefined : limits;
}

function printAccount(context: CliContext, account: AccountDocument): void {
  const json = presentAccount(account);
  const { frozen } = json;
  printFields(context, { json }, [
    ['Account', json.account_id],
    ['Name', json.name],
    ['Crypto', json.crypto ? 'on' : 'off'],
    ['Crypto tolerance', `${json.crypto_tolerance} %`],
    ['Methods', json.enabled_methods.join(', ') || 'none'],
    ['Rails', json.enabled_rails.join(', ') || 'none'],
    ['Payout fees', formatPairs(json.payout_fees)],
    ['Acquirers’ fees', `borne by the ${json.acquirer_fee}`],
    ['Payers stored', `${json.payer_data_months} months`],
    ['Payout limits', formatPairs(json.payout_limits ?? {})],
    ['Owed limits', json.owed_limits && formatPairs(json.owed_limits)],
    ['Refunds with step-up above', json.refund_step_up && formatPairs(json.refund_step_up)],
    ['Unverified payees', json.hold_unverified ? 'held' : 'not held'],
    ['Frozen', frozen && `since ${formatTime(frozen.at)}: ${frozen.reason}`],
    ['Dashboard login', json.dashboard_email],
    ['Created', formatTime(json.created_at)],
  ]);
}

function formatPairs(pairs: PayoutFees): string {
  const texts = Object.entries(pairs).map(([name, minor]) => `${name}=${minor}`);
  return texts.join(', ') || 'none';
}

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

const Percent = readBy((text) => {
  const percent = /^\d(\.\d{1,2})?$/.test(text) ? Number(text) : undefined;
  return percent !== undefined && percent <= 2 ? percent : undefined;
}, 'It must be a percentage from 0 to 2, such as 0.5, with at most two decimals.').meta({
  placeholder: 'percent',
});

const update = defineCommand({
  name: 'update',
  description: 'switch crypto, payment methods and payout rails on or off; set fees and limits',
  options: z.object({
    account_id: AccountId,
    crypto: z
      .enum(['on', 'off'])
      .optional()
      .meta({ description: 'crypto payments', placeholder: 'state' }),
    crypto_tolerance: Percent.optional().describe(
      'by how much a crypto payment may be short and still be received (usual: 0)',
    ),
    enable_method: Methods.describe('enable a method or rail'),
    disable_method: Methods.describe('disable a method or rail'),
    payout_fee: Fees.describe('fee of a payout over a rail, or in one of its currencies'),
    acquirer_fee: z.enum(FEE_BEARERS).optional().meta({
      description: 'who bears what acquirers keep of payments and disputes (usual: service)',
      placeholder: 'bearer',
    }),
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
    hold_unverified: z.enum(['on', 'off']).optional().meta({
      description: 'payouts to a payee that is not verified wait once their file was withdrawn',
      placeholder: 'state',
    }),
    reason: Reason.optional(),
  }),
  notes: `
Methods: ${PAYMENT_METHOD_IDS.join(', ')}
Rails:   ${RAIL_IDS.join(', ')}

The fee of a rail in one currency comes before that of the rail. NAME=off removes a fee or a limit. Fees
apply to payouts that are created from now on; a limit of payouts counts each day (UTC) of each
environment. A tolerance is of crypto payments that are created from now on. Who bears acquirers' fees counts for
what they report from now on. To raise or switch off a limit, or for --hold-unverified off: ${APPROVED_HERE}`,
  example: 'account update acct_… --enable-method visa --payout-fee sepa_instant=50',
  run: async (context, { account_id, reason, ...change }) => {
    if (Object.values(change).every((value) => value === undefined)) {
      throw new ServiceError(
        'nothing_to_change',
        'Say what to change: --crypto on|off, --crypto-tolerance PERCENT, --enable-method METHOD, --disable-method METHOD, ' +
          '--payout-fee RAIL[:CURRENCY]=MINOR, --acquirer-fee service|merchant, --payout-limit CURRENCY=MINOR, ' +
          '--owed-limit CURRENCY=MINOR, --refund-step-up CURRENCY=MINOR, ' +
          '--hold-unverified on|off or --payer-data-months N.',
      );
    }
    const { enable_method = [], disable_method = [] } = change;
    const both = enable_method.find((method) => disable_method.includes(method));
    if (both !== undefined) {
      throw new ServiceError('contradiction', `${both} can't be enabled and disabled at once.`);
    }
    const { stores } = await context.readDeps();
    const isNeeded = liftsBrake(await findAccount(stores, account_id), change);
    const input = { account_id, ...omitUndefined(change) };
    const call = { isNeeded, account_id, input, reason };
    await withAuthority(context, 'account update', call, async (deps) =>
      printAccount(context, await updateAccount(deps, account_id, change, { mayLift: false })),
    );
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
  options: z.object({ account_id: AccountId, ...NOTED }),
  notes: APPROVED_HERE,
  example: 'account unfreeze acct_… --reason "Ticket 42: keys changed" --operator mia',
  run: async (context, { account_id, reason, operator }) => {
    const { stores } = await context.readDeps();
    const account = await findAccount(stores, account_id);
    if (account.frozen === undefined) return printAccount(context, account);
    const input = { account_id, frozen_at: account.frozen.at };
    const call = { isNeeded: true, account_id, input, reason };
    await withAuthority(context, 'account unfreeze', call, async (deps) => {
      const change = { ...input, freeze: false, reason: reason ?? '', operator };
      printAccount(context, await setFrozen(deps, account_id, change));
    });
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
      columns: {
        ACCOUNT: 'account_id',
        CREATED: 'created_at',
        CRYPTO: ({ crypto }) => (crypto ? 'on' : 'off'),
        METHODS: ({ enabled_methods }) =>
          `${enabled_methods.length} of ${PAYMENT_METHOD_IDS.length}`,
        NAME: 'name',
      },
      none: 'There are no accounts yet.',
    });
  },
});

export const accountCommands = defineGroup({
  name: 'account',
  description: 'merchants: create one, see it, change what it may use',
  commands: [create, update, freeze, unfreeze, show, list],
});

const setAddress = defineCommand({
  name: 'set',
  description: 'register the wallet of an account on a network',
  options: z.object({
    ...OWNER,
    network: z.enum(NETWORKS).describe('network of its assets'),
    address: z.string().describe('address, with its checksum'),
    reason: Reason.optional(),
  }),
  notes: `
Settlements of every asset on the network go to it. On live it takes effect after 24 hours, in which nothing
is settled: a wallet that is replaced gets nothing more. ${APPROVED_HERE}`,
  example:
    'wallet set acct_… --env sandbox --network ethereum --address 0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
  run: async (context, { account_id, env, reason, ...wallet }) => {
    const owner = await findOwner(context, { account_id, env });
    assertAddress({ ...owner, ...wallet });
    const input = { account_id, ...wallet };
    const call = { isNeeded: owner.livemode, account_id, input, reason };
    await withAuthority(context, 'wallet set', call, async (deps) => {
      const json = await setWallet(deps, { ...owner, ...wallet });
      printFields(context, { json }, [
        ['Network', json.network],
        ['Address', json.address],
        ['Takes effect', formatTime(json.counts_from)],
        ['Until then', json.paused_until === null ? '-' : 'nothing is settled'],
      ]);
    });
  },
});

const showWallets = defineCommand({
  name: 'show',
  description: 'show the wallets of an account in one environment',
  options: z.object(OWNER),
  example: 'wallet show acct_… --env sandbox',
  run: async (context, options) => {
    const { account_id, livemode } = await findOwner(context, options);
    printList(context, {
      rows: await listWallets(await context.readDeps(), account_id, livemode),
      present: (wallet) => wallet,
      columns: {
        NETWORK: 'network',
        ADDRESS: 'address',
        'TAKES EFFECT': ({ counts_from }) => formatTime(counts_from),
        'SETTLEMENTS GO TO': ({ counting, paused_until }) =>
          counting ?? `nothing until ${formatTime(paused_until)}`,
      },
      none: 'No wallet is registered.',
    });
  },
});

export const walletCommands = defineGroup({
  name: 'wallet',
  description: 'wallets to which the balances of crypto assets are paid out',
  commands: [setAddress, showWallets],
});
