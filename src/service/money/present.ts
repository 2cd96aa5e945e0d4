import { RawJson } from '../../base/json';
import type { EncryptedCustomer } from '../../domain/creation';
import { isRequestedAsset } from '../../domain/crypto/deposit';
import type { PaymentOpening } from '../../domain/payment/payment';
import { buildCryptoPageUrl, buildRedirectUrl } from '../../encryption/pay-token';
import { returnedAmount, settledAmount } from '../../ledger/resource-entries';
import type { CryptoPaymentDocument } from '../../store/crypto-payments';
import type { CryptoSettlementDocument } from '../../store/crypto-settlements';
import type { DisputeDocument } from '../../store/disputes';
import type { PaymentDocument } from '../../store/payments';
import type { PayoutDocument } from '../../store/payouts';
import type { RecipientDocument } from '../../store/recipients';
import type { RefundDocument } from '../../store/refunds';
import type { ApiKey, MerchantDeps, Owner } from '../access';
import { noPayer } from './payers';
import type { Page } from './read';

type PresentDeps = Pick<MerchantDeps, 'config' | 'keys' | 'payers'>;

type PaymentFields = Owner & { customer: EncryptedCustomer } & Pick<
    PaymentDocument,
    | '_id'
    | 'status'
    | 'amount'
    | 'currency'
    | 'method'
    | 'country'
    | 'reference'
    | 'failure'
    | 'metadata'
    | 'settled_amount'
    | 'disputed'
    | 'authorized_at'
    | 'settled_at'
    | 'cancelled_at'
    | 'created_at'
    | 'updated_at'
  >;

/** @see docs/api.md#create-a-payment */
export async function presentPayment(
  { config, keys, payers }: PresentDeps,
  payment: PaymentFields,
) {
  const { _id: id, status, amount, currency, method, country, reference, failure } = payment;
  return {
    id,
    object: 'payment',
    status,
    amount,
    currency,
    method,
    country,
    reference,
    redirect_url: buildRedirectUrl(config.PUBLIC_URL, keys.pay_token, payment._id),
    customer: await payers.decrypt(payment),
    failure,
    livemode: payment.livemode,
    metadata: new RawJson(payment.metadata),
    amount_settled: payment.settled_at === null ? null : settledAmount(payment),
    disputed: payment.disputed ?? 0,
    authorized_at: payment.authorized_at,
    settled_at: payment.settled_at,
    cancelled_at: payment.cancelled_at,
    created_at: payment.created_at,
    updated_at: payment.updated_at,
  };
}

/** Shows the payer only to keys that may read payments. */
export function presentPaymentTo(
  deps: PresentDeps,
  payment: PaymentFields,
  { scopes }: Pick<ApiKey, 'scopes'>,
) {
  const { customer } = payment;
  const shownCustomer = scopes.includes('payments:read') ? customer : noPayer(customer.reference);
  return presentPayment(deps, { ...payment, customer: shownCustomer });
}

export function withOpening<T extends Omit<PaymentFields, keyof ReturnType<typeof openingFields>>>(
  payment: T,
  opening: PaymentOpening,
) {
  return { ...payment, ...openingFields(opening) };
}

function openingFields({ status, failure, created_at }: PaymentOpening) {
  const unsetTimes = { authorized_at: null, settled_at: null, cancelled_at: null };
  const unmoved = { settled_amount: null, disputed: 0 };
  return { status, failure, ...unsetTimes, ...unmoved, created_at, updated_at: created_at };
}

/** @see docs/api.md#refunds */
export function presentRefund(refund: RefundDocument) {
  const { _id: id, payment_id, amount, currency, status, reason, failure } = refund;
  return {
    id,
    object: 'refund',
    payment_id,
    amount,
    currency,
    status,
    reason,
    failure,
    amount_settled:
      refund.status === 'settled' ? settledAmount(refund) : refund.late_amount || null,
    settled_at: refund.settled_at,
    created_at: refund.created_at,
  };
}

/** @see docs/api.md#disputes */
export function presentDispute(dispute: DisputeDocument) {
  const { _id: id, payment_id, status, amount, currency, fee, reason } = dispute;
  return {
    id,
    object: 'dispute',
    ...{ payment_id, status, amount, currency, fee, reason },
    evidence_due_at: dispute.evidence_due_at,
    evidence_submitted_at: dispute.evidence_submitted_at,
    closed_at: dispute.closed_at,
    livemode: dispute.livemode,
    created_at: dispute.created_at,
    updated_at: dispute.updated_at,
  };
}

/** @see docs/api.md#payouts */
export function presentPayout(payout: PayoutDocument) {
  const { _id: id, status, amount, currency, method, recipient_id, reference } = payout;
  const { verification = null } = payout;
  return {
    id,
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
    fee: payout.fee,
    amount_returned: payout.status === 'returned' ? returnedAmount(payout) : null,
    verification: verification && {
      result: verification.result,
      checked_at: verification.checked_at,
    },
    livemode: payout.livemode,
    created_at: payout.created_at,
    completed_at: payout.completed_at,
  };
}

/** @see docs/api.md#crypto */
export function presentCryptoPayment(
  { config, keys }: Pick<PresentDeps, 'config' | 'keys'>,
  payment: CryptoPaymentDocument,
) {
  const { _id, status, amount, currency, asset, network, amount_due, amount_received } = payment;
  return {
    id: _id,
    object: 'crypto_payment',
    ...{ status, amount, currency, asset, network, amount_due, amount_received },
    address: payment.address,
    payment_uri: payment.payment_uri,
    redirect_url: buildCryptoPageUrl(config.PUBLIC_URL, keys.pay_token, payment._id),
    deposits: payment.deposits.filter(isRequestedAsset).map((deposit) => ({
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

/** @see docs/api.md#settlements */
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

/** @see docs/api.md#recipients */
export function presentRecipient(recipient: RecipientDocument) {
  const { _id, type, scheme, last4, created_at, deleted_at } = recipient;
  const fields = { id: _id, object: 'payout_recipient', type, scheme, last4, created_at };
  return deleted_at ? { ...fields, deleted: true } : fields;
}

export async function presentPage<D>(
  { rows, has_more, next_cursor }: Page<D>,
  present: (document: D) => object | Promise<object>,
) {
  return { object: 'list', data: await Promise.all(rows.map(present)), has_more, next_cursor };
}
