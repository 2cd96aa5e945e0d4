import type { Movement } from '../../domain/banks/movement';
import { sumTaken } from '../../domain/dispute/report';
import type { RefundStatus } from '../../domain/refund/refund';
import type { EntryKind, ResourceEntryKind } from '../../ledger/entries';
import { ENTRY_LINES } from '../../ledger/entry-lines';
import { settledAmount } from '../../ledger/resource-entries';
import type { DisputeDocument } from '../../store/disputes';
import type { PaymentDocument } from '../../store/payments';
import type { RefundDocument } from '../../store/refunds';
import { compareValues, type Difference, difference } from '../compare';
import {
  COMMON,
  type ExpectedKinds,
  expectOne,
  listHeld,
  listResolved,
  type ResourceRow,
  type ResourceRule,
  sumFromSuspense,
  type WithMovements,
  withMovements,
} from '../rule';
import { type Read, readAll } from '../snapshot';

const REFUND_FIELDS = [...COMMON, 'amount', 'connector', 'settled_amount'] as const;

type RefundPart = Pick<RefundDocument, (typeof REFUND_FIELDS)[number]> & WithMovements;

const COUNTED: readonly RefundStatus[] = ['processing', 'settled'];
const ACCEPTED = ['refund_accepted', 'refund_held', 'refund_resolved'] as const;

export const REFUNDS: ResourceRule<RefundPart, ResourceEntryKind<'refund'>> = {
  collection: 'refunds',
  fields: REFUND_FIELDS,
  entries: {
    processing: ACCEPTED,
    settled: [...ACCEPTED, 'refund_settled'],
    failed: [...ACCEPTED, 'refund_failed'],
  } satisfies Record<RefundStatus, ExpectedKinds<RefundPart, EntryKind>>,
  steps: {
    refund_accepted: ({ amount }) => expectOne(ENTRY_LINES.refund_accepted(amount)),
    refund_settled: (refund) => {
      const { connector, amount, movements } = refund;
      const [sent, held] = [settledAmount(refund), Number(sumFromSuspense(movements, 'out'))];
      return expectOne(ENTRY_LINES.refund_settled(connector, amount, sent, held));
    },
    refund_failed: ({ amount }) => expectOne(ENTRY_LINES.refund_failed(amount)),
    refund_held: (refund) => listHeld('refund', refund),
    refund_resolved: (refund) => listResolved('refund', refund),
  },
};

const DISPUTE_FIELDS = [...COMMON, 'amount', 'fee', 'kind', 'transfers'] as const;

type DisputePart = Pick<DisputeDocument, (typeof DISPUTE_FIELDS)[number]>;

/** The entries of a dispute are those of its payment. */
export const DISPUTES: ResourceRule<DisputePart, never> = {
  collection: 'disputes',
  fields: DISPUTE_FIELDS,
  entries: { needs_response: [], under_review: [], won: [], lost: [], accepted: [] },
  steps: {},
  compare: ({ _id, amount, fee, transfers }) => {
    const taken = sumTaken(transfers);
    return [
      ...compareValues('dispute_differs', _id, 'amount', taken.amount, amount),
      ...compareValues('dispute_differs', _id, 'fee', taken.fee, fee),
    ];
  },
  // An operator's chargeback is over from the start, and reports nothing.
  reportedTransitions: ({ kind, transition }) =>
    kind === 'clawed_back' ? [] : Array.from({ length: transition }, (_, before) => before + 1),
};

type Payment = Pick<
  PaymentDocument,
  '_id' | 'account_id' | 'livemode' | 'currency' | 'connector' | 'status' | 'amount'
> & { refunded?: number; refunded_over?: number };

const PLACE = ['account_id', 'livemode', 'currency', 'connector'] as const;
const PAYMENT = [...PLACE, 'status', 'amount', 'refunded', 'refunded_over'];

const listPayments = (rows: readonly ResourceRow[]) => [
  ...new Set(rows.flatMap(({ payment_id }) => payment_id ?? [])),
];

async function readPayments(read: Read, ids: readonly string[]): Promise<Map<string, Payment>> {
  const payments = new Map<string, Payment>();
  if (ids.length === 0) return payments;
  const projection = Object.fromEntries(PAYMENT.map((field) => [field, 1]));
  const rows = read<Payment>('payments', { _id: { $in: ids } }, { projection });
  for await (const payment of rows) payments.set(payment._id, payment);
  return payments;
}

/** Compares where a refund or dispute is with its payment. */
function comparePlace(
  check: 'refund_misplaced' | 'dispute_misplaced',
  row: ResourceRow,
  payment: Payment | undefined,
): Difference[] {
  const { _id, payment_id } = row;
  if (payment === undefined) return [difference(check, _id, 'payment_id', payment_id, null)];
  const toText = (value: string | boolean) => (typeof value === 'boolean' ? `${value}` : value);
  return PLACE.flatMap((part) =>
    compareValues(check, _id, part, toText(payment[part]), toText(row[part])),
  );
}

export async function compareDisputes(
  read: Read,
  rows: readonly ResourceRow[],
): Promise<Difference[]> {
  const payments = await readPayments(read, listPayments(rows));
  return rows.flatMap((row) =>
    comparePlace('dispute_misplaced', row, payments.get(row.payment_id ?? '')),
  );
}

export async function comparePayments(read: Read, rows: readonly ResourceRow[]) {
  const ids = rows.filter(({ refunded = 0 }) => refunded !== 0).map(({ _id }) => _id);
  return await compareRefunded(read, ids, await readPayments(read, ids));
}

export async function compareRefunds(read: Read, rows: readonly ResourceRow[]) {
  const ids = listPayments(rows);
  const payments = await readPayments(read, ids);
  const misplaced = rows.flatMap((row) => {
    const payment = payments.get(row.payment_id ?? '');
    const status = payment?.status ?? 'settled';
    return [
      ...comparePlace('refund_misplaced', row, payment),
      ...compareValues('refund_misplaced', row._id, 'status of the payment', 'settled', status),
    ];
  });
  return [...misplaced, ...(await compareRefunded(read, ids, payments))];
}

const REFUND = ['payment_id', 'status', 'amount', 'currency', 'settled_amount'];

type Refund = Pick<
  RefundDocument,
  '_id' | 'payment_id' | 'status' | 'amount' | 'currency' | 'settled_amount'
> & { movements: readonly Movement[] };

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
    const { payment_id, status } = refund;
    const bySettlement = COUNTED.includes(status) ? settledAmount(refund) : 0;
    const taken = bySettlement + sumBorneByMerchant(refund);
    sums.set(payment_id, (sums.get(payment_id) ?? 0) + taken);
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
