import { z } from 'zod';
import { MONTHS_MAX, PAYER_MONTHS } from '../../domain/account/retention';
import { isCurrency } from '../../domain/currencies';
import { omitUndefined } from '../../domain/defined';
import { ServiceError } from '../../domain/errors';
import { PAYMENT_METHOD_IDS } from '../../domain/payment/catalog';
import { type PayoutFees, parseFeeName } from '../../domain/payout/fees';
import { RAIL_IDS } from '../../domain/payout/rails';
import { type AccountDocument, updateAccount } from '../../service/accounts';
import { defineCommand } from '../command';
import type { CliContext } from '../context';
import { AccountId, readBy, wholeNumber } from '../options';
import { formatTime, printFields } from '../output';

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
  .refine((fees) => isEachOnce(fees.map(({ name }) => name)), FEE_FAULT)
  .optional();

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
  .refine((limits) => isEachOnce(limits.map(({ name }) => name)), LIMIT_FAULT)
  .transform((limits) => Object.fromEntries(limits.map(({ name, minor }) => [name, minor])))
  .optional();

/** Reads `NAME=MINOR` or `NAME=off`, which is null. */
function readPair(text: string): { name: string; minor: number | null } | undefined {
  const [, name, minor] = /^([^=]+)=(\d{1,11}|off)$/.exec(text) ?? [];
  if (name === undefined || minor === undefined) return undefined;
  return { name, minor: minor === 'off' ? null : Number(minor) };
}

function isEachOnce(names: readonly string[]): boolean {
  return new Set(names).size === names.length;
}

export const update = defineCommand({
  name: 'update',
  description:
    'switch crypto, payment methods and payout rails on or off; set the fees and limits of payouts',
  options: z.object({
    account_id: AccountId,
    crypto: z
      .enum(['on', 'off'])
      .optional()
      .describe('crypto payments')
      .meta({ placeholder: 'state' }),
    enable_method: Methods.describe('enable a method or rail'),
    disable_method: Methods.describe('disable a method or rail'),
    payout_fee: Fees.describe('fee of a payout over a rail, or in one of its currencies').meta({
      placeholder: 'rail[:currency]=minor',
    }),
    payer_data_months: wholeNumber(1, MONTHS_MAX)
      .optional()
      .describe(
        `how long names and e-mail addresses of payers are stored, 1 to ${MONTHS_MAX} months (usual: ${PAYER_MONTHS})`,
      )
      .meta({ placeholder: 'n' }),
    payout_limit: Limits.describe('most that is paid out in a day').meta({
      placeholder: 'currency=minor',
    }),
  }),
  notes: `
Methods: ${PAYMENT_METHOD_IDS.join(', ')}
Rails:   ${RAIL_IDS.join(', ')}

The fee of a rail in one currency comes before that of the rail. NAME=off removes a fee or a limit. Fees
apply to payouts that are created from now on; a limit counts each day (UTC) of each environment.`,
  example: 'account update acct_… --enable-method visa --payout-fee sepa_instant=50',
  run: async (context, { account_id, ...change }) => {
    if (Object.values(change).every((value) => value === undefined)) {
      throw new ServiceError(
        'nothing_to_change',
        'Say what to change: --crypto on|off, --enable-method METHOD, --disable-method METHOD, ' +
          '--payout-fee RAIL[:CURRENCY]=MINOR, --payout-limit CURRENCY=MINOR or ' +
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

export function presentAccount(account: AccountDocument) {
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
    ...omitUndefined({ payout_limits: limits, frozen }),
    dashboard_email: account.dashboard.email,
    created_at: account.created_at,
  };
}

export function printAccount(context: CliContext, account: AccountDocument): void {
  const json = presentAccount(account);
  const { frozen } = account;
  printFields(context, { json }, [
    ['Account', json.account_id],
    ['Name', json.name],
    ['Crypto', json.crypto ? 'on' : 'off'],
    ['Methods', json.enabled_methods.join(', ') || 'none'],
    ['Rails', json.enabled_rails.join(', ') || 'none'],
    ['Payout fees', formatPairs(json.payout_fees)],
    ['Payers stored', `${json.payer_data_months} months`],
    ['Payout limits', formatPairs(json.payout_limits ?? {})],
    ['Frozen', frozen && `since ${formatTime(frozen.at)}: ${frozen.reason}`],
    ['Dashboard login', json.dashboard_email],
    ['Created', formatTime(json.created_at)],
  ]);
}

function formatPairs(pairs: PayoutFees): string {
  const texts = Object.entries(pairs).map(([name, minor]) => `${name}=${minor}`);
  return texts.join(', ') || 'none';
}
