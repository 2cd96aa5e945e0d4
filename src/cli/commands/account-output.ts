import { PAYER_MONTHS } from '../../domain/account/retention';
import { omitUndefined } from '../../domain/defined';
import { PAYMENT_METHOD_IDS } from '../../domain/payment/catalog';
import type { PayoutFees } from '../../domain/payout/fees';
import { RAIL_IDS } from '../../domain/payout/rails';
import type { AccountDocument } from '../../service/merchants/accounts';
import type { CliContext } from '../context';
import { formatTime, printFields } from '../output';

export function presentAccount(account: AccountDocument) {
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
    ...omitUndefined({ payout_limits, owed_limits, refund_step_up, frozen }),
    dashboard_email: account.dashboard.email,
    created_at: account.created_at,
  };
}

function dropEmpty(limits: Record<string, number> = {}) {
  return Object.keys(limits).length === 0 ? undefined : limits;
}

export function printAccount(context: CliContext, account: AccountDocument): void {
  const json = presentAccount(account);
  const { frozen } = json;
  printFields(context, { json }, [
    ['Account', json.account_id],
    ['Name', json.name],
    ['Crypto', json.crypto ? 'on' : 'off'],
    ['Methods', json.enabled_methods.join(', ') || 'none'],
    ['Rails', json.enabled_rails.join(', ') || 'none'],
    ['Payout fees', formatPairs(json.payout_fees)],
    ['Payers stored', `${json.payer_data_months} months`],
    ['Payout limits', formatPairs(json.payout_limits ?? {})],
    ['Owed limits', json.owed_limits && formatPairs(json.owed_limits)],
    ['Refunds with step-up above', json.refund_step_up && formatPairs(json.refund_step_up)],
    ['Frozen', frozen && `since ${formatTime(frozen.at)}: ${frozen.reason}`],
    ['Dashboard login', json.dashboard_email],
    ['Created', formatTime(json.created_at)],
  ]);
}

function formatPairs(pairs: PayoutFees): string {
  const texts = Object.entries(pairs).map(([name, minor]) => `${name}=${minor}`);
  return texts.join(', ') || 'none';
}
