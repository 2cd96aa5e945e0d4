import { formatAmount } from '../../domain/amount';
import { isApprovalRequired } from '../../domain/approval';
import { parseBookCurrency } from '../../domain/crypto/assets';
import { omitUndefined } from '../../domain/defined';
import { ServiceError } from '../../domain/errors';
import { amountInJson } from '../../domain/money';
import { actOnBalance, type BalanceCall, isLiveCall } from '../../service/money/balances/act';
import type { Note } from '../../service/money/balances/fund';
import type { BalanceRow } from '../../service/money/read';
import { auditAs } from '../../service/operators/deps';
import { identifyOperator, printApprovalRequired } from '../acting-operator';
import type { CliContext } from '../context';
import { printFields } from '../output';

export const ON_LIVE = `On live it needs OPERATOR_KEY and --reason, and, where the sum over 24 hours is above APPROVAL_LIMIT,
always for an asset, the approval of a second operator.`;

/**
 * Acts on a balance, and prints it as it is then, or the approval that the act needs.
 * @throws ServiceError `operator_key_required`, and those of the act
 */
export async function changeBalance(
  context: CliContext,
  call: BalanceCall,
  { operator, reason, approved_by }: Note,
  done: string,
): Promise<void> {
  const deps = await context.actingDeps();
  const livemode = await isLiveCall(deps, call);
  const { verified, ...who } = await identifyOperator(context, { livemode, operator });
  if (livemode && reason === undefined) {
    throw new ServiceError('invalid_usage', "required option '--reason <text>' not specified");
  }
  const note = omitUndefined({ ...who, reason, approved_by: livemode ? undefined : approved_by });
  const audit = verified && { audit: auditAs(deps, verified.name) };
  const { limits } = context.settings();
  const result = await actOnBalance({ ...deps, ...audit }, call, note, { verified, limits });
  if (isApprovalRequired(result)) return printApprovalRequired(context, result);
  const { posted, ...balance } = result;
  printBalanceChange(context, balance, [done, posted]);
}

function printBalanceChange(
  context: CliContext,
  row: BalanceRow & { operation_id: string },
  [label, amount]: [string, number | bigint],
): void {
  printFields(context, { json: presentBalance(row) }, [
    ['Balance account', row.balance_account],
    [label, formatAmount(amount, row.currency)],
    ['Available', formatAmount(row.available, row.currency)],
    ['Reserved', formatAmount(row.reserved, row.currency)],
    ['Operation', row.operation_id],
  ]);
}

/** An asset counts in its smallest unit, as a text. */
export function presentBalance<Row extends BalanceRow>(row: Row) {
  const { currency, available, reserved, ...rest } = row;
  const asset = parseBookCurrency(currency);
  if (asset !== undefined) {
    return { ...rest, ...asset, available: String(available), reserved: String(reserved) };
  }
  return { ...row, available: amountInJson(available), reserved: amountInJson(reserved) };
}
