import type { Movement } from '../../domain/movement/movement';
import type { RefundStatus } from '../../domain/refund/refund';
import type { EntryKind, ResourceEntryKind } from '../../ledger/entries';
import { ENTRY_LINES } from '../../ledger/entry-lines';
import { settledAmount } from '../../ledger/resource-entries';
import type { PaymentDocument } from '../../store/payments';
import type { RefundDocument } from '../../store/refunds';
import { compareValues, type Difference, difference } from '../compare';
import { type ExpectedKinds, type ResourceRow, type ResourceRule, withMovements } from '../rule';
import { type Read, readAll } from '../snapshot';
import { COMMON, listHeld, listResolved, sumFromSuspense, type WithMovements } from './common';

const REFUND_FIELDS = [...COMMON, 'amount', 'connector', 'settled_amount'] as const;

type RefundPart = Pick<RefundDocument, (typeof REFUND_FIELDS)[number]> & WithMovements;

const ACCEPTED = ['refund_accepted', 'refund_held', 'refund_resolved'] as const;

export const REFUNDS: ResourceRule<RefundPart, ResourceEntryKind<'refund'>> = {
  collection: 'refunds',
  fields: REFUND_FIELDS,
  entries: {
    processing: ACCEPTED,
    settled: [...ACCEPTED, 'refund_settled'],
    failed: [...ACCEPTED, 'refund_failed'],
  } satisfies Record<RefundStatus, ExpectedKinds<RefundPart, EntryKind>>,
  lines: {
    refund_accepted: ({ amount }) => ENTRY_LINES.refund_accepted(amount),
    refund_settled: (refund) =>
      ENTRY_LINES.refund_settled(
        refund.connector,
        refund.amount,
        settledAmount(refund),
        Number(sumFromSuspense(refund.movements, 'out')),
      ),
    refund_failed: ({ amount }) => ENTRY_LINES.refund_failed(amount),
    refund_held: () => [],
    refund_resolved: () => [],
  },
  steps: {
    refund_held: (refund) => listHeld('refund', refund),
    refund_resolved: (refund) => listResolved('refund', refund),
  },
};

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

const REFUND = ['payment_id', 'status', 'amount', 'currency', 'settled_amount'];

type Refund = Pick<
  RefundDocument,
  '_id' | 'payment_id' | 'status' | 'amount' | 'currency' | 'settled_amount'
> & { movements: readonly Movement[] };

/** Minor units. */
function takenAmount(refund: Refund): number {
  const bySettlement = COUNTED.includes(refund.status) ? settledAmount(refund) : 0;
  return bySettlement + sumBorneByMerchant(refund);
}

/** Minor units that the merchant bears of what else moved, without what came back. */
function sumBorneByMerchant({ currency, movements }: Refund): number {
  return movements
    .filter((movement) => movement.currency === currency)
    .flatMap(({ direction, resolutions }) =>
      resolutions.map(({ as, amount }) => {
        if (as !== 'merchant') return 0;
        return direction === 'out' ? Number(amount) : -Number(amount);
      }),
    )
    .reduce((sum, amount) => sum + amount, 0);
}

async function compareRefunded(
  read: Read,
  ids: readonly string[],
  payments: ReadonlyMap<string, Payment>,
): Promise<Difference[]> {
  const sums = new Map(ids.map((id) => [id, 0]));
  if (ids.length === 0) return [];
  const projection = Object.fromEntries(REFUND.map((field) => [field, 1]));
  const rows = read<Refund>('refunds', { payment_id: { $in: ids } }, { projection });
  for (const refund of await withMovements(read, await readAll(rows))) {
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
