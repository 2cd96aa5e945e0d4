import type { RefundRequest } from '../src/domain/creation';
import { LEGS, type PostingOf } from '../src/ledger/postings';
import type { PaymentDocument } from '../src/store/payments';
import type { RefundDocument } from '../src/store/refunds';
import { positionAt, tieBase } from './events';
import type { OpenRefund, RecordRefundMove } from './refunds';

/**
 * The document as it is first written.
 * @param payment as it was before the reservation
 * @see spec §2.2
 */
export function newRefund(
  input: OpenRefund,
  payment: PaymentDocument,
  { reason }: RefundRequest,
): RefundDocument {
  const { refund_id, payment_id, account_id, livemode, created_at, request_id } = input;
  const { method, connector, currency, bank_reference } = payment;
  const due = Date.parse(created_at) + input.due_seconds * 1_000;
  return {
    _id: refund_id,
    ...{ account_id, livemode, payment_id, reason, currency, method, connector, request_id },
    version: 1,
    position: positionAt(created_at, 0, tieBase(1)),
    amount: input.amount ?? payment.amount - (payment.refunded ?? 0),
    status: 'processing',
    failure: null,
    settled_at: null,
    created_at,
    updated_at: created_at,
    payment_bank_reference: bank_reference,
    bank_reference: null,
    due_at: new Date(due).toISOString(),
    attention: null,
    audit: [],
  };
}

/** What events of this refund carry. Decided: "Events". */
export function happeningOf(
  refund: Pick<RecordRefundMove, 'refund_id' | 'payment_id' | 'account_id' | 'livemode'>,
) {
  const { refund_id, payment_id, account_id, livemode } = refund;
  const data = { refund_id, payment_id };
  return { resource: 'refund' as const, resource_id: refund_id, account_id, livemode, data };
}

/** What a move changes in the document. */
export function changeOf(input: RecordRefundMove, version: number): Partial<RefundDocument> {
  const { to, at, attention, failure, bank_reference } = input;
  return {
    status: to,
    version,
    updated_at: at,
    attention,
    ...(to === 'settled' ? { settled_at: at } : {}),
    ...(failure === undefined ? {} : { failure }),
    ...(bank_reference === undefined ? {} : { bank_reference }),
  };
}

/** The posting of a step; at most one of each kind per refund. */
export function postingOf(
  kind: 'refund_accepted' | 'refund_settled' | 'refund_failed',
  refund: RefundDocument,
  at: string,
): PostingOf {
  const { _id: resource_id, account_id, livemode, currency, connector, amount } = refund;
  const legs =
    kind === 'refund_settled' ? LEGS.refund_settled(connector, amount) : LEGS[kind](amount);
  return { kind, resource_id, account_id, livemode, currency, at, legs };
}

/** What a workflow needs to know, from its opening or when it starts again. */
export function factsOf(refund: RefundDocument, request_id: string) {
  const { _id, payment_id, account_id, livemode, amount, currency, method, connector } = refund;
  return {
    refund_id: _id,
    ...{ payment_id, account_id, livemode, amount, currency, method, connector },
    payment_bank_reference: refund.payment_bank_reference,
    due_at_ms: Date.parse(refund.due_at),
    request_id,
  };
}
