import { sumTaken } from '../../domain/dispute/report';
import type { DisputeDocument } from '../../store/disputes';
import type { PaymentDocument } from '../../store/payments';
import { compareValues, type Difference, difference } from '../compare';
import type { ResourceRow, ResourceRule } from '../rule';
import type { Read } from '../snapshot';
import { COMMON } from './common';

const DISPUTE_FIELDS = [...COMMON, 'amount', 'fee', 'kind', 'transfers'] as const;

type DisputePart = Pick<DisputeDocument, (typeof DISPUTE_FIELDS)[number]>;

/** The entries of a dispute are those of its payment. */
export const DISPUTES: ResourceRule<DisputePart, never> = {
  collection: 'disputes',
  fields: DISPUTE_FIELDS,
  entries: { needs_response: [], under_review: [], won: [], lost: [], accepted: [] },
  lines: {},
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

type Payment = Pick<PaymentDocument, '_id' | 'account_id' | 'livemode' | 'currency' | 'connector'>;

export async function compareDisputes(
  read: Read,
  rows: readonly ResourceRow[],
): Promise<Difference[]> {
  const ids = [...new Set(rows.flatMap(({ payment_id }) => payment_id ?? []))];
  if (ids.length === 0) return [];
  const payments = new Map<string, Payment>();
  for await (const payment of read<Payment>('payments', { _id: { $in: ids } })) {
    payments.set(payment._id, payment);
  }
  return rows.flatMap((row) => compareWithPayment(row, payments.get(row.payment_id ?? '')));
}

function compareWithPayment({ _id, payment_id, ...dispute }: ResourceRow, payment?: Payment) {
  if (payment === undefined) {
    return [difference('dispute_misplaced', _id, 'payment_id', payment_id, null)];
  }
  const compareField = (part: string, expected: unknown, actual: unknown) =>
    compareValues('dispute_misplaced', _id, part, expected, actual);
  return [
    ...compareField('account_id', payment.account_id, dispute.account_id),
    ...compareField('livemode', String(payment.livemode), String(dispute.livemode)),
    ...compareField('currency', payment.currency, dispute.currency),
    ...compareField('connector', payment.connector, dispute.connector),
  ];
}
