import type { Command } from 'commander';
import { MAIN_BALANCE } from '../../domain/balance-account';
import { formatMoney } from '../../domain/money';
import type { BalanceRow } from '../../ledger/book';
import { findAccount } from '../account';
import type { CliContext } from '../context';
import { fundBalance } from '../fund';
import {
  type Env,
  envOption,
  isLive,
  operatorOption,
  parseAmount,
  parseBalanceAccount,
  parseCurrency,
  parseOperationId,
  reasonOption,
} from '../options';
import { fields, table } from '../output';

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
  {"data": [{"balance_account", "currency", "available", "reserved"}]}`,
  fund: `
Amounts are in minor units: 100000 EUR is €1,000.00. A balance account is made by its first funding.
No money moves anywhere: this records in the ledger what came in from outside.

With an --operation-id of your own it credits once: should the outcome be unknown, repeat it with the
same id, and it says what the balance is. Another funding under the same id is refused.

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
}

export function addBalanceCommands(program: Command, context: CliContext): void {
  const group = program
    .command('balance')
    .description('what an account holds, and crediting it')
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
    .addHelpText('after', EXAMPLES.fund)
    .action((id: string, options: FundOptions) => fund(context, id, options));
}

async function show(context: CliContext, accountId: string, env: Env): Promise<void> {
  const stores = await context.stores();
  const account = await findAccount(stores, accountId);
  const data = await stores.ledger.balances(account._id, isLive(env));
  const rows = data.map((row) => [
    row.balance_account,
    row.currency,
    formatMoney(row.available, row.currency),
    formatMoney(row.reserved, row.currency),
  ]);
  const none = `The ${env} account holds nothing yet: ${MAIN_BALANCE} is there, and empty.`;
  const heading = ['BALANCE ACCOUNT', 'CURRENCY', 'AVAILABLE', 'RESERVED'];
  context.print({ json: { data }, text: table(heading, rows, none) });
}

async function fund(context: CliContext, accountId: string, options: FundOptions): Promise<void> {
  const { env, balanceAccount: balance_account, currency, amount } = options;
  const { operationId: id, operator, reason } = options;
  const stores = await context.stores();
  const account = await findAccount(stores, accountId);
  const funded = await fundBalance(
    { mongo: await context.mongo(), stores, now: context.now },
    { account_id: account._id, livemode: isLive(env), balance_account, currency, amount },
    { id, note: { operator, reason } },
  );
  context.print({ json: funded, text: funding(funded, amount) });
}

function funding(row: BalanceRow & { operation_id: string }, amount: number): string {
  return fields([
    ['Balance account', row.balance_account],
    ['Credited', formatMoney(amount, row.currency)],
    ['Available', formatMoney(row.available, row.currency)],
    ['Reserved', formatMoney(row.reserved, row.currency)],
    ['Operation', row.operation_id],
  ]);
}
