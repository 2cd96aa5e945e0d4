import { type Command, Option } from 'commander';
import { PAYMENT_METHOD_IDS } from '../../domain/catalogue';
import { defined } from '../../domain/defined';
import type { PayoutFees } from '../../domain/payout-fees';
import { RAIL_IDS } from '../../domain/rails';
import { MONTHS_MAX, PAYER_MONTHS } from '../../domain/retention';
import type { AccountDocument } from '../../store/accounts';
import {
  type AccountChange,
  createAccount,
  findAccount,
  type NewAccount,
  setFrozen,
  updateAccount,
} from '../account';
import type { CliContext } from '../context';
import { CliFailure } from '../failure';
import { SANDBOX_FUNDS } from '../fund';
import { operatorOption, parseEmail, parseLimit, parseMonths, reasonOption } from '../options';
import { fields, table, when } from '../output';
import { collectFee, collectLimit, collectMethod, parseName } from './account-options';

const LIST_MAX = 1_000;
const EXAMPLES = {
  group: `
Examples:
  npm run -s cli -- account create --name "Acme Shop"
  npm run -s cli -- account update acct_… --crypto on --disable-method amex`,
  create: `
The sandbox starts with test funds in ${SANDBOX_FUNDS.currencies.join(', ')}: \`balance show\` shows them.

Example:
  npm run -s cli -- account create --name "Acme Shop" --json
  {"account_id", "sandbox_key", "live_key", "dashboard_email", "dashboard_password"}`,
  update: `
Methods: ${PAYMENT_METHOD_IDS.join(', ')}
Rails:   ${RAIL_IDS.join(', ')}

A fee is in minor units of the currency that is paid out, drawn beside the amount: that of the rail in
this currency, else that of the rail. off removes it; 0 removes that of a rail, and sets none for one
currency. It counts for the payouts that are made from then on.

A payout limit is in minor units of its currency, for each day of UTC and each environment. It counts
the amounts of payouts accepted while it is set; what fails is given back to its day. 0 lets none go.

Examples:
  npm run -s cli -- account update acct_… --enable-method visa --disable-method card_payout
  npm run -s cli -- account update acct_… --payout-fee sepa_instant=50 --payout-fee card_payout:EUR=120
  npm run -s cli -- account update acct_… --payout-limit EUR=5000000 --payout-limit GBP=off`,
  freeze: `
Examples:
  npm run -s cli -- account freeze acct_… --reason "Ticket 42: a live key leaked" --operator mia
  npm run -s cli -- account unfreeze acct_… --reason "Ticket 42: keys changed" --operator mia`,
};

interface FreezeOptions {
  reason?: string;
  operator?: string;
}

export function addAccountCommands(program: Command, context: CliContext): void {
  const group = program
    .command('account')
    .description('merchants: make one, see it, change what it may use')
    .addHelpText('after', EXAMPLES.group);
  group
    .command('create')
    .description('make an account with a key for each environment and a dashboard login')
    .requiredOption('--name <name>', "the merchant's name, up to 100 characters", parseName)
    .option('--email <address>', 'dashboard login (default: one is made up)', parseEmail)
    .addHelpText('after', EXAMPLES.create)
    .action((options: NewAccount) => create(context, options));
  group
    .command('update')
    .description(
      'switch crypto, payment methods and payout rails on or off; set the fees of payouts',
    )
    .argument('<account_id>')
    .addOption(new Option('--crypto <state>', 'crypto payments').choices(['on', 'off']))
    .option('--enable-method <method>', 'enable a method or rail (repeatable)', collectMethod)
    .option('--disable-method <method>', 'disable a method or rail (repeatable)', collectMethod)
    .option(
      '--payout-fee <rail[:currency]=minor>',
      'fee of a payout over a rail, or in one of its currencies (repeatable)',
      collectFee,
    )
    .option(
      '--payer-data-months <n>',
      `how long names and e-mail addresses of payers are kept, 1 to ${MONTHS_MAX} months (usual: ${PAYER_MONTHS})`,
      parseMonths,
    )
    .option(
      '--payout-limit <currency=minor>',
      'most that is paid out in a day; CURRENCY=off removes it (repeatable)',
      collectLimit,
    )
    .addHelpText('after', EXAMPLES.update)
    .action((id: string, change: AccountChange) => update(context, id, change));
  for (const freeze of [true, false]) {
    group
      .command(freeze ? 'freeze' : 'unfreeze')
      .description(
        freeze
          ? 'let the keys of an account only read, and hold its payouts that no bank has got yet'
          : 'let a frozen account write again',
      )
      .argument('<account_id>')
      .addOption(reasonOption().makeOptionMandatory(freeze))
      .addOption(operatorOption())
      .addHelpText('after', EXAMPLES.freeze)
      .action(async (id: string, { reason = '', operator }: FreezeOptions) => {
        const why = { freeze, reason, operator };
        printAccount(context, await setFrozen(await context.acting(), id, why));
      });
  }
  group
    .command('show')
    .description('show one account')
    .argument('<account_id>')
    .action(async (id: string) => {
      printAccount(context, await findAccount(await context.stores(), id));
    });
  group
    .command('list')
    .description('list the accounts, newest first')
    .option('--limit <n>', `how many, 1 to ${LIST_MAX}`, parseLimit(LIST_MAX), 100)
    .action(({ limit }: { limit: number }) => list(context, limit));
}

async function create(context: CliContext, asked: NewAccount): Promise<void> {
  const created = await createAccount(await context.acting(), asked);
  const text = fields([
    ['Account', created.account_id],
    ['Sandbox key', created.sandbox_key],
    ['Live key', created.live_key],
    ['Dashboard login', created.dashboard_email],
    ['Dashboard password', created.dashboard_password],
  ]);
  const note = 'The keys and the password are not stored and not shown again: keep them now.';
  context.print({ json: created, text: `${text}\n\n${note}` });
}

async function update(context: CliContext, id: string, change: AccountChange): Promise<void> {
  const { enableMethod = [], disableMethod = [] } = change;
  if (Object.keys(change).length === 0) {
    throw new CliFailure(
      'nothing_to_change',
      'Say what to change: --crypto on|off, --enable-method METHOD, --disable-method METHOD, ' +
        '--payout-fee RAIL[:CURRENCY]=MINOR, --payout-limit CURRENCY=MINOR or ' +
        '--payer-data-months N.',
    );
  }
  const both = enableMethod.find((method) => disableMethod.includes(method));
  if (both !== undefined) {
    throw new CliFailure('contradiction', `${both} can't be enabled and disabled at once.`);
  }
  printAccount(context, await updateAccount(await context.acting(), id, change));
}

async function list(context: CliContext, limit: number): Promise<void> {
  const { accounts } = await context.stores();
  const found = await accounts.list(limit + 1);
  const page = found.slice(0, limit);
  const rows = page.map(({ _id, name, crypto, enabled_methods, created_at }) => [
    _id,
    when(created_at),
    crypto ? 'on' : 'off',
    `${enabled_methods.length} of ${PAYMENT_METHOD_IDS.length}`,
    name,
  ]);
  const heading = ['ACCOUNT', 'CREATED', 'CRYPTO', 'METHODS', 'NAME'];
  const has_more = found.length > limit;
  context.print({
    json: { data: page.map(present), has_more },
    text:
      table(heading, rows, 'There are no accounts yet.') +
      (has_more ? `\n\nThere are more: --limit takes up to ${LIST_MAX}.` : ''),
  });
}

function printAccount(context: CliContext, account: AccountDocument): void {
  const json = present(account);
  const text = fields([
    ['Account', json.account_id],
    ['Name', json.name],
    ['Crypto', json.crypto ? 'on' : 'off'],
    ['Methods', json.enabled_methods.join(', ') || 'none'],
    ['Rails', json.enabled_rails.join(', ') || 'none'],
    ['Payout fees', feesText(json.payout_fees)],
    ['Payers kept', `${json.payer_data_months} months`],
    ['Payout limits', feesText(json.payout_limits ?? {})],
    ...(json.frozen ? ([['Frozen', frozenText(json.frozen)]] as const) : []),
    ['Dashboard login', json.dashboard_email],
    ['Created', when(json.created_at)],
  ]);
  context.print({ json, text });
}

function frozenText({ at, reason }: NonNullable<AccountDocument['frozen']>): string {
  return `since ${when(at)}: ${reason}`;
}

function present(account: AccountDocument) {
  const { frozen, payout_limits = {} } = account;
  const limits = Object.keys(payout_limits).length === 0 ? undefined : payout_limits;
  return {
    account_id: account._id,
    name: account.name,
    crypto: account.crypto,
    enabled_methods: PAYMENT_METHOD_IDS.filter((id) => account.enabled_methods.includes(id)),
    enabled_rails: RAIL_IDS.filter((id) => !account.disabled_rails?.includes(id)),
    payout_fees: account.payout_fees ?? {},
    payer_data_months: account.payer_data_months ?? PAYER_MONTHS,
    ...defined({ payout_limits: limits, frozen }),
    dashboard_email: account.dashboard.email,
    created_at: account.created_at,
  };
}

function feesText(fees: PayoutFees): string {
  const each = Object.entries(fees).map(([name, fee]) => `${name}=${fee}`);
  return each.join(', ') || 'none';
}
