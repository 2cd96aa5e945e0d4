import { type Command, InvalidArgumentError, Option } from 'commander';
import { assetRules, bookCurrency } from '../../domain/crypto';
import { type Env, isLive } from '../../domain/environment';
import { findAccount } from '../account';
import {
  type AdjustDeps,
  type Adjustment,
  adjustBalance,
  type Correction,
  reverseOperation,
} from '../adjust';
import { APPROVAL_LIMIT } from '../approval';
import { movedText, rowInJson } from '../balance-text';
import type { CliContext } from '../context';
import { CliFailure } from '../failure';
import {
  approvedByOption,
  envOption,
  operatorOption,
  parseBalanceAccount,
  parseCurrency,
  parseOperationId,
  parseSignedAmount,
  parseSignedUnits,
  reasonOption,
} from '../options';

const EXAMPLES = {
  adjust: `
Amounts are in minor units; one below 0 debits, and never more than the balance holds. On live, above
APPROVAL_LIMIT (${APPROVAL_LIMIT} minor units by default), a second operator approves.

Coins are named by --asset and --network, and counted in their smallest unit; on live a second operator
approves each correction of theirs.

With --against receivable, a debit collects what the merchant owes.

Example:
  npm run -s cli -- balance adjust acct_… --env live --balance-account main --currency EUR \\
    --amount -5000 --operator mia --reason "Ticket 42: wire booked twice" --json
  {"balance_account", "currency", "available", "reserved", "operation_id"}
  npm run -s cli -- balance adjust acct_… --env live --balance-account main --asset ETH \\
    --network ethereum --amount -5000000000000000000 --operator mia --approved-by ada \\
    --reason "Ticket 43: deposit undone by a reorganisation"`,
  reverse: `
Posts the opposite of a funding, an adjustment or a claw-back, once.

Example:
  npm run -s cli -- balance reverse funded:wire-2026-03-01 --operator mia --reason "Typo" --json
  {"balance_account", "currency", "available", "reserved", "operation_id"}`,
};

interface AdjustOptions extends Correction {
  env: Env;
  balanceAccount: string;
  currency?: string;
  asset?: string;
  network?: string;
  amount: string;
  against: Adjustment['against'];
  operationId?: string;
}

/** Adds the commands that correct a balance. */
export function addCorrections(group: Command, context: CliContext): void {
  group
    .command('adjust')
    .description('correct a balance, and show it as it is then')
    .argument('<account_id>')
    .addOption(envOption())
    .requiredOption('--balance-account <name>', 'which balance', parseBalanceAccount)
    .option('--currency <currency>', 'ISO 4217 code', parseCurrency)
    .option('--asset <asset>', 'a coin, in place of a currency')
    .option('--network <network>', 'network of the coin')
    .requiredOption('--amount <minor>', 'how much; below 0 debits')
    .addOption(
      new Option('--against <account>', 'account on the other side')
        .choices(['adjustments', 'receivable'])
        .default('adjustments'),
    )
    .option('--operation-id <id>', 'makes a repeat post nothing', parseOperationId)
    .addOption(operatorOption().makeOptionMandatory())
    .addOption(reasonOption().makeOptionMandatory())
    .addOption(approvedByOption())
    .addHelpText('after', EXAMPLES.adjust)
    .action((id: string, options: AdjustOptions) => adjust(context, id, options));
  group
    .command('reverse')
    .description('undo a funding, an adjustment or a claw-back, and show the balance then')
    .argument('<operation_id>')
    .addOption(operatorOption().makeOptionMandatory())
    .addOption(reasonOption().makeOptionMandatory())
    .addOption(approvedByOption())
    .addHelpText('after', EXAMPLES.reverse)
    .action((id: string, options: Correction) => reverse(context, id, options));
}

async function adjust(
  context: CliContext,
  accountId: string,
  options: AdjustOptions,
): Promise<void> {
  const { env, balanceAccount: balance_account, against } = options;
  const money = moneyOf(options);
  const { _id: account_id } = await findAccount(await context.stores(), accountId);
  const adjustment = { account_id, livemode: isLive(env), balance_account, ...money };
  const adjusted = await adjustBalance(
    await adjusting(context),
    { ...adjustment, against },
    options,
    options.operationId,
  );
  context.print({
    json: rowInJson(adjusted),
    text: movedText(adjusted, ['Adjusted', money.amount]),
  });
}

/** Money, or coins, of a correction. @throws CliFailure `invalid_usage` */
function moneyOf(options: AdjustOptions) {
  try {
    return readMoney(options);
  } catch (error) {
    if (!(error instanceof InvalidArgumentError)) throw error;
    throw new CliFailure('invalid_usage', error.message);
  }
}

/** @throws InvalidArgumentError */
function readMoney({ currency, asset = '', network = '', amount, against }: AdjustOptions) {
  if (currency !== undefined && asset === '' && network === '') {
    return { currency, amount: parseSignedAmount(amount) };
  }
  const coin = currency === undefined ? assetRules(asset, network) : undefined;
  if (coin === undefined) {
    throw new InvalidArgumentError('Give --currency, or a coin by --asset and --network.');
  }
  if (against === 'receivable') throw new InvalidArgumentError('No merchant owes coins.');
  return { currency: bookCurrency(coin), amount: parseSignedUnits(amount) };
}

async function reverse(context: CliContext, id: string, correction: Correction): Promise<void> {
  const deps = await adjusting(context);
  const { amount, ...reversed } = await reverseOperation(deps, id, correction);
  context.print({ json: rowInJson(reversed), text: movedText(reversed, ['Reversed', amount]) });
}

async function adjusting(context: CliContext): Promise<AdjustDeps> {
  const { approvalLimit } = context.settings();
  return { ...(await context.acting()), approvalLimit };
}
