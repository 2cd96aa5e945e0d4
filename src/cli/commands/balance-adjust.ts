import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { assetRules, bookCurrency } from '../../domain/crypto/assets';
import { omitUndefined } from '../../domain/defined';
import { isLive } from '../../domain/environment';
import { ServiceError } from '../../domain/errors';
import { findAccount } from '../../service/accounts';
import { assertOpposite, parseAgainst } from '../../service/balances/adjust';
import { defineCommand, parseInput } from '../command';
import {
  AccountId,
  ApprovedBy,
  BalanceAccount,
  BankReference,
  Currency,
  Env,
  OperationId,
  Operator,
  Reason,
  readBy,
  SignedAmount,
  SignedUnits,
  textOption,
} from '../options';
import { changeBalance, ON_LIVE } from './balance-change';

const AdjustOptions = z.object({
  account_id: AccountId,
  env: Env,
  balance_account: BalanceAccount,
  currency: Currency.optional(),
  asset: z.string().optional().describe('a crypto asset, instead of a currency'),
  network: z.string().optional().describe('network of the asset'),
  amount: textOption('how much; below 0 debits', 'minor'),
  against: readBy(
    parseAgainst,
    'It must be adjustments, receivable, suspense, bank_fees, or clearing:CONNECTOR.',
  )
    .default('adjustments')
    .describe('account on the other side')
    .meta({ placeholder: 'account' }),
  bank_reference: BankReference.optional().describe(
    "the bank's name for the movement, with --against clearing:CONNECTOR",
  ),
  owed: z
    .boolean()
    .default(false)
    .describe('a debit may exceed the balance: the merchant owes the rest'),
  operation_id: OperationId.optional().describe('makes a repeat post nothing'),
  operator: Operator.optional(),
  reason: Reason.optional(),
  approved_by: ApprovedBy,
});

export const adjust = defineCommand({
  name: 'adjust',
  description: 'correct a balance, and show it after that',
  options: AdjustOptions,
  notes: `
A debit never exceeds the balance, unless --owed says that the merchant owes the rest. --against receivable collects what
the merchant owes; clearing:CONNECTOR corrects what a bank moved, once for each --bank-reference, and awaits a line of its
statement; suspense holds money back and returns it;
bank_fees is the service's cost. An asset counts in its smallest unit. ${ON_LIVE}`,
  example: `balance adjust acct_… --env live --balance-account main --currency EUR --amount -5000 \\
    --operator mia --reason "Ticket 42: wire booked twice"`,
  run: async (context, { account_id, env, balance_account, operation_id, ...options }) => {
    const { against, bank_reference, operator, reason, approved_by } = options;
    const money = readMoney(options);
    const livemode = isLive(env);
    const { currency, amount } = money;
    const owed = options.owed || undefined;
    assertOpposite(context.settings(), {
      livemode,
      against,
      bank_reference,
      owed,
      amount,
      currency,
    });
    const { stores } = await context.readDeps();
    await findAccount(stores, account_id);
    const id = operation_id ?? `adjust_${randomUUID()}`;
    const about = { account_id, livemode, balance_account, against, bank_reference, owed };
    const call = omitUndefined({ ...about, currency, id, amount: `${amount}` });
    await changeBalance(
      context,
      { ...call, act: 'adjust' },
      { operator, reason, approved_by },
      'Adjusted',
    );
  },
});

/** @throws ServiceError `invalid_usage` */
function readMoney({
  currency,
  asset,
  network,
  amount,
  against,
}: Pick<z.infer<typeof AdjustOptions>, 'currency' | 'asset' | 'network' | 'amount' | 'against'>) {
  if (currency !== undefined && asset === undefined && network === undefined) {
    return { currency, amount: parseInput(SignedAmount, amount) };
  }
  const rules = currency === undefined ? assetRules(asset ?? '', network ?? '') : undefined;
  if (rules === undefined) {
    const message = 'Give --currency, or a crypto asset by --asset and --network.';
    throw new ServiceError('invalid_usage', message);
  }
  if (against === 'receivable') {
    throw new ServiceError('invalid_usage', 'No merchant owes a crypto asset.');
  }
  return { currency: bookCurrency(rules), amount: parseInput(SignedUnits, amount) };
}
