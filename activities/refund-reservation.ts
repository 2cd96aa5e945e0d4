import type { ClientSession } from 'mongodb';
import { abandon } from '../src/base/mongo';
import type { RefundRequest } from '../src/domain/creation';
import { refundableAmount, refundFault } from '../src/domain/refund/rules';
import type { RefundInput } from '../src/domain/refund/workflow';
import { buildRefundEntry } from '../src/ledger/resource-entries';
import type { PaymentDocument } from '../src/store/payments';
import type { RefundDocument } from '../src/store/refunds';
import { positionAt, tieBase } from './shared/events';
import type { RecordDeps } from './shared/record-table';

export type OpenRefund = RefundInput & {
  created_at: string;
};

/**
 * Reserves on the payment first, where concurrent refunds conflict.
 * @returns null when the payment does not allow it, or another attempt was first
 * @throws InsufficientBalance
 */
export async function reserve(
  { stores }: Pick<RecordDeps, 'stores'>,
  input: OpenRefund,
  session: ClientSession,
): Promise<RefundDocument | null> {
  const { refund_id, payment_id, amount, account_id, livemode, accepted_at } = input;
  const payment = await stores.payments.reserveRefund(payment_id, amount, session);
  if (payment === null || !isOwn(payment, account_id, livemode)) return await abandon(session);
  if (refundFault(payment, amount, new Date(accepted_at))) return await abandon(session);
  const request = await stores.idempotency.clearRequest(refund_id, session);
  if (request === null || !('refund' in request)) return await abandon(session);
  const refund = newRefund(input, payment, request.refund);
  const entry = buildRefundEntry('refund_accepted', refund, { at: input.created_at });
  await stores.ledger.post(entry, session);
  await stores.refunds.insert(refund, session);
  return refund;
}

/** @param payment before the reservation */
function newRefund(
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
    transition: 1,
    position: positionAt(created_at, 0, tieBase(1)),
    amount: input.amount ?? refundableAmount(payment) - payment.refunded,
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

export function isOwn(payment: PaymentDocument, account_id: string, livemode: boolean): boolean {
  return payment.account_id === account_id && payment.livemode === livemode;
}
