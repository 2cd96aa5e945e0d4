import type { RowFigures } from '../result';
import { measureBeside } from './beside';
import { measureCold } from './cold';
import type { RowContext } from './context';
import { measureDeliveries } from './deliveries';
import { measureMerchants } from './merchants';
import type { RowName } from './names';
import { measurePayments } from './payments';

/** Measures the rows that are asked for; the one that restarts the workers comes last. */
export async function measureRows(
  context: RowContext,
  asked: readonly RowName[],
): Promise<RowFigures> {
  const rows: RowFigures = {};
  let settled: string[] = [];
  if (asked.includes('payments')) {
    const measured = await measurePayments(context);
    rows.payments = measured.figures;
    settled = measured.settled;
  }
  const floor = rows.payments?.floor.payments_per_second;
  const beside = { settled, floor };
  if (asked.includes('refunds')) rows.refunds = await measureBeside(context, 'refunds', beside);
  if (asked.includes('payouts')) rows.payouts = await measureBeside(context, 'payouts', beside);
  if (asked.includes('deliveries')) rows.deliveries = await measureDeliveries(context);
  if (asked.includes('merchants')) rows.merchants = await measureMerchants(context);
  if (asked.includes('cold')) rows.cold = await measureCold(context);
  return rows;
}
