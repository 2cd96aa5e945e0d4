import type { Customer } from '../domain/creation';
import type { PaymentOpening } from '../domain/payment-workflow';
import { RawJson } from '../json';
import { cryptoPageUrl, redirectUrl } from '../keys/pay-token';
import type { KeyRing } from '../keys/ring';
import type { CryptoPaymentDocument } from '../store/crypto-payments';
import type { CryptoSettlementDocument } from '../store/crypto-settlements';
import type { PaymentDocument } from '../store/payments';
import type { PayoutDocument } from '../store/payouts';
import type { RefundDocument } from '../store/refunds';

export interface Presentation {
  publicUrl: string;
  payTokens: KeyRing;
}

/** Fields of a payment that merchants see. */
export type PaymentFields = Pick<
  PaymentDocument,
  | '_id'
  | 'status'
  | 'amount'
  | 'currency'
  | 'method'
  | 'country'
  | 'reference'
  | 'failure'
  | 'livemode'
  | 'metadata'
  | 'authorized_at'
  | 'settled_at'
  | 'cancelled_at'
  | 'created_at'
  | 'updated_at'
  | 'token_kid'
>;

/**
 * Payment as merchants see it: exactly the fields of docs/api.md#create-a-payment, in their order.
 */
export function presentPayment(
  { publicUrl, payTokens }: Presentation,
  payment: PaymentFields,
  customer: Customer,
) {
  const { _id, status, amount, currency, method, country, reference, failure } = payment;
  return {
    id: _id,
    object: 'payment',
    status,
    amount,
    currency,
    method,
    country,
    reference,
    redirect_url: redirectUrl(publicUrl, payTokens, payment),
    customer,
    failure,
    livemode: payment.livemode,
    metadata: new RawJson(payment.metadata),
    authorized_at: payment.authorized_at,
    settled_at: payment.settled_at,
    cancelled_at: payment.cancelled_at,
    created_at: payment.created_at,
    updated_at: payment.updated_at,
  };
}

/** The fields as they were when the payment was first written. */
export function asOpened<T extends Omit<PaymentFields, keyof ReturnType<typeof openingFields>>>(
  payment: T,
  opening: PaymentOpening,
) {
  return { ...payment, ...openingFields(opening) };
}

function openingFields({ status, failure, created_at }: PaymentOpening) {
  const unmoved = { authorized_at: null, settled_at: null, cancelled_at: null };
  return { status, failure, ...unmoved, created_at, updated_at: created_at };
}

/** Refund as merchants see it: exactly the fields of docs/api.md#refunds, in their order. */
export function presentRefund(refund: RefundDocument) {
  const { _id, payment_id, amount, currency, status, reason, failure } = refund;
  return {
    id: _id,
    object: 'refund',
    payment_id,
    amount,
    currency,
    status,
    reason,
    failure,
    settled_at: refund.settled_at,
    created_at: refund.created_at,
  };
}

/** Payout as merchants see it: exactly the fields of docs/api.md#payouts, in their order. */
export function presentPayout(payout: PayoutDocument) {
  const { _id, status, amount, currency, method, recipient_id, reference } = payout;
  return {
    id: _id,
    object: 'payout',
    status,
    amount,
    currency,
    method,
    recipient_id,
    reference,
    metadata: new RawJson(payout.metadata),
    failure: payout.failure,
    returned: payout.returned,
    livemode: payout.livemode,
    created_at: payout.created_at,
    completed_at: payout.completed_at,
  };
}

/** Crypto payment as merchants see it: exactly the fields of docs/api.md#crypto, in their order. */
export function presentCryptoPayment(
  { publicUrl, payTokens }: Presentation,
  payment: CryptoPaymentDocument,
) {
  const { _id, status, amount, currency, asset, network, amount_due, amount_received } = payment;
  return {
    id: _id,
    object: 'crypto_payment',
    ...{ status, amount, currency, asset, network, amount_due, amount_received },
    address: payment.address,
    payment_uri: payment.payment_uri,
    redirect_url: cryptoPageUrl(publicUrl, payTokens, payment),
    deposits: payment.deposits.map((deposit) => ({
      transaction_id: deposit.transaction_id,
      amount: deposit.amount,
      confirmations: deposit.confirmations,
      required_confirmations: deposit.required_confirmations,
      status: deposit.status,
      seen_at: deposit.seen_at,
    })),
    reference: payment.reference,
    livemode: payment.livemode,
    metadata: new RawJson(payment.metadata),
    expires_at: payment.expires_at,
    received_at: payment.received_at,
    created_at: payment.created_at,
    updated_at: payment.updated_at,
  };
}

/** Settlement as merchants see it: exactly the fields of docs/api.md#settlements, in their order. */
export function presentCryptoSettlement(settlement: CryptoSettlementDocument) {
  const { _id, status, asset, network, amount, fee, wallet_address, transaction_id } = settlement;
  return {
    id: _id,
    object: 'crypto_settlement',
    ...{ status, asset, network, amount, fee, wallet_address, transaction_id },
    failure: settlement.failure,
    livemode: settlement.livemode,
    created_at: settlement.created_at,
    completed_at: settlement.completed_at,
  };
}

/** Page of a list, made of one row more than asked for, which tells whether there is a next one. */
export async function presentPage<Row extends { position: string }>(
  rows: readonly Row[],
  limit: number,
  present: (row: Row) => unknown,
) {
  const page = rows.slice(0, limit);
  const has_more = rows.length > limit;
  const next_cursor = has_more ? (page.at(-1)?.position ?? null) : null;
  return { object: 'list', data: await Promise.all(page.map(present)), has_more, next_cursor };
}
