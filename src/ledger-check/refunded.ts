import type { RefundStatus } from '../domain/refund/refund';
import { computeRest } from '../domain/sent-held';
import { settledAmount } from '../ledger/resource-entries';
import type { PaymentDocument } from '../store/payments';
import type { RefundDocument } from '../store/refunds';
import { compareValues, type Difference, difference } from './compare';
import type { ResourceRow } from './rule';
import type { Read } from './snapshot';

type Payment = Pick<
  PaymentDocument,
  '_id' | 'account_id' | 'livemode' | 'currency' | 'connector' | 'status' | 'amount'
> & { refunded?: number; refunded_over?: number };

const COUNTED: readonly RefundStatus[] = ['processing', 'settled'];
const PAYMENT = [
  ...['account_id', 'livemode', 'currency', 'connector', 'status', 'amount'],
  ...['refunded', 'refunded_over'],
];

export async function comparePayments(read: Read, rows: readonly ResourceRow[]) {
  const ids = rows.filter(({ refunded = 0 }) => refunded !== 0).map(({ _id }) => _id);
  return await compareRefunded(read, ids, await readPayments(read, ids));
}

export async function compareRefunds(read: Read, rows: readonly ResourceRow[]) {
  const ids = [...new Set(rows.flatMap(({ payment_id }) => payment_id ?? []))];
  const payments = await readPayments(read, ids);
  return [
    ...rows.flatMap((refund) => compareWithPayment(refund, payments.get(refund.payment_id ?? ''))),
    ...(await compareRefunded(read, ids, payments)),
  ];
}

async function readPayments(read: Read, ids: readonly string[]): Promise<Map<string, Payment>> {
  const payments = new Map<string, Payment>();
  if (ids.length === 0) return payments;
  const projection = Object.fromEntries(PAYMENT.map((field) => [field, 1]));
  const rows = read<Payment>('payments', { _id: { $in: ids } }, { projection });
  for await (const payment of rows) payments.set(payment._id, payment);
  return payments;
}

function compareWithPayment({ _id, payment_id, ...refund }: ResourceRow, payment?: Payment) {
  if (payment === undefined) {
    return [difference('refund_misplaced', _id, 'payment_id', payment_id, null)];
  }
  const compareField = (part: string, expected: unknown, actual: unknown) =>
    compareValues('refund_misplaced', _id, part, expected, actual);
  return [
    ...compareField('account_id', payment.account_id, refund.account_id),
    ...compareField('livemode', String(payment.livemode), String(refund.livemode)),
    ...compareField('currency', payment.currency, refund.currency),
    ...compareField('connector', payment.connector, refund.connector),
    ...compareField('status of the payment', 'settled', payment.status),
  ];
}

const REFUND = [
  ...['payment_id', 'status', 'amount', 'currency', 'settled_amount'],
  ...['sent_late', 'sent_held'],
];

type Refund = Pick<
  RefundDocument,
  'payment_id' | 'status' | 'amount' | 'currency' | 'settled_amount' | 'sent_late' | 'sent_held'
>;

/** Minor units. */
function takenAmount(refund: Refund): number {
  return takenBySettlement(refund) + sumBorneByMerchant(refund);
}

/** Minor units that the bank sent beyond the refund, and the merchant bears. */
function sumBorneByMerchant({ currency, sent_held = [] }: Refund): number {
  return sent_held
    .filter((held) => held.resolved?.as === 'merchant' && held.currency === currency)
    .reduce((sum, held) => sum + Number(computeRest(held)), 0);
}

function takenBySettlement(refund: Refund): number {
  return COUNTED.includes(refund.status) ? settledAmount(refund) : (refund.sent_late?.amount ?? 0);
}

async function compareRefunded(
  read: Read,
  ids: readonly string[],
  payments: ReadonlyMap<string, Payment>,
): Promise<Difference[]> {
  const sums = new Map(ids.map((id) => [id, 0]));
  if (ids.length === 0) return [];
  const projection = Object.fromEntries(REFUND.map((field) => [field, 1]));
  const refunds = read<Refund>('refunds', { payment_id: { $in: ids } }, { projection });
  for await (const refund of refunds) {
    const { payment_id } = refund;
    sums.set(payment_id, (sums.get(payment_id) ?? 0) + takenAmount(refund));
  }
  return [...sums].flatMap(([id, sum]) => {
    const payment = payments.get(id);
    const { refunded = 0, refunded_over: over = 0 } = payment ?? {};
    const exceeds = payment !== undefined && refunded > payment.amount;
    const most = `at most ${payment?.amount}`;
    return [
      ...compareValues('refunded_differs', id, 'refunded', sum, refunded + over),
      ...(exceeds ? [difference('refunded_exceeds', id, 'refunded', most, refunded)] : []),
    ];
  });
}
