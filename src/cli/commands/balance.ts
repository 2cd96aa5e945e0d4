import type { Command } from 'commander';
import { MAIN_BALANCE } from '../../domain/balance-account';
import { type Env, isLive } from '../../domain/environment';
import { formatMoney } from '../../domain/money';
import { findAccount } from '../account';
import { balanceText, movedText, rowInJson } from '../balance-text';
import type { CliContext } from '../context';
import { fundBalance } from '../fund';
import {
  approvedByOption,
  envOption,
  operatorOption,
  parseAmount,
  parseBalanceAccount,
  parseCurrency,
  parseOperationId,
  reasonOption,
} from '../options';
import { table } from '../output';
import { addCorrections } from './balance-corrections';

const FUND_EXAMPLE = `npm run -s cli -- balance fund acct_… --env sandbox --balance-account main \\
    --currency EUR --amount 100000`;
const EXAMPLES = {
  group: `
Examples:
  npm run -s cli -- balance show acct_… --env sandbox
  ${FUND_EXAMPLE}`,
  show: `
Example:
  npm run -s cli -- balance show acct_… --env live --json
  {"data": [{"balance_account", "currency", "available", "reserved"}]}

A coin has a row of its own, in its smallest unit as a text:
  {"balance_account", "asset", "network", "available", "reserved"}

What a merchant owes, since a balance did not hold what a bank took back, is shown beside them:
  "receivables": [{"currency", "owed"}]`,
  fund: `
Amounts are in minor units: 100000 EUR is €1,000.00. A balance account is made by its first funding.
No money moves anywhere: this records in the ledger what came in from outside.

With an --operation-id of your own it credits once: should the outcome be unknown, repeat it with the
same id, and it says what the balance is. Another funding under the same id is refused. On live, above
APPROVAL_LIMIT where it is set, a second operator approves.

Example:
  ${FUND_EXAMPLE} --operation-id wire-2026-03-01 --operator mia --reason "Wire of 1 March" --json
  {"balance_account", "currency", "available", "reserved", "operation_id"}`,
};

interface FundOptions {
  env: Env;
  balanceAccount: string;
  currency: string;
  amount: number;
  operationId?: string;
  operator?: string;
  reason?: string;
  approvedBy?: string;
}

export function addBalanceCommands(program: Command, context: CliContext): void {
  const group = program
    .command('balance')
    .description('what an account holds, crediting it and correcting it')
    .addHelpText('after', EXAMPLES.group);
  group
    .command('show')
    .description('show every balance of an account in one environment')
    .argument('<account_id>')
    .addOption(envOption())
    .addHelpText('after', EXAMPLES.show)
    .action((id: string, options: { env: Env }) => show(context, id, options.env));
  group
    .command('fund')
    .description('credit a balance, and show it as it is then')
    .argument('<account_id>')
    .addOption(envOption())
    .requiredOption('--balance-account <name>', 'which balance', parseBalanceAccount)
    .requiredOption('--currency <currency>', 'ISO 4217 code', parseCurrency)
    .requiredOption('--amount <minor>', 'how much, in minor units', parseAmount)
    .option('--operation-id <id>', 'makes a repeat credit nothing', parseOperationId)
    .addOption(operatorOption())
    .addOption(reasonOption())
    .addOption(approvedByOption())
    .addHelpText('after', EXAMPLES.fund)
    .action((id: string, options: FundOptions) => fund(context, id, options));
  addCorrections(group, context);
}

async function show(context: CliContext, accountId: string, env: Env): Promise<void> {
  const stores = await context.stores();
  const account = await findAccount(stores, accountId);
  const data = await stores.ledger.balances(account._id, isLive(env));
  const rows = data.map((row) => [
    row.balance_account,
    row.currency,
    balanceText(row.available, row.currency),
    balanceText(row.reserved, row.currency),
  ]);
  const receivables = await stores.ledger.receivables(account._id, isLive(env));
  const none = `The ${env} account holds nothing yet: ${MAIN_BALANCE} is there, and empty.`;
  const heading = ['BALANCE ACCOUNT', 'CURRENCY', 'AVAILABLE', 'RESERVED'];
  const owed = receivables.map(
    (row) => `The merchant owes ${formatMoney(row.owed, row.currency)}.`,
  );
  context.print({
    json: { data: data.map(rowInJson), ...(receivables.length === 0 ? {} : { receivables }) },
    text: [table(heading, rows, none), ...owed].join('\n\n'),
  });
}

async function fund(context: CliContext, accountId: string, options: FundOptions): Promise<void> {
  const { env, balanceAccount: balance_account, currency, amount } = options;
  const { operationId: id, operator, reason, approvedBy } = options;
  const { creditLimit } = context.settings();
  const acting = await context.acting();
  const account = await findAccount(acting.stores, accountId);
  const funded = await fundBalance(
    { ...acting, creditLimit },
    { account_id: account._id, livemode: isLive(env), balance_account, currency, amount },
    { id, note: { operator, reason, approvedBy } },
  );
  context.print({ json: rowInJson(funded), text: movedText(funded, ['Credited', amount]) });
}
