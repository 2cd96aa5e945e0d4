import type { SessionAnswer } from '../connectors/contract/activities';
import { isPaymentMethodId, methodRules } from '../src/domain/catalogue';
import type { PaymentRequest } from '../src/domain/creation';
import { PAYMENT_EVENTS, type PaymentStatus } from '../src/domain/payment';
import { payToken, payTokenHash } from '../src/keys/pay-token';
import { LEGS, type PostingOf } from '../src/ledger/postings';
import type { PaymentDocument } from '../src/store/payments';
import { positionAt, tieBase } from './events';
import type { OpenPayment, PaymentStanding, RecordMove } from './payments';

/** The document as it is first written. @see spec §2.1 */
export function newPayment(
  payTokenKey: Buffer,
  input: OpenPayment,
  request: PaymentRequest,
): PaymentDocument {
  const { session, payment_id, settlement_due_seconds, ...facts } = input;
  const opened = session?.outcome === 'opened' ? session : null;
  const failure =
    session?.outcome === 'declined' ? { code: session.code, message: session.message } : null;
  return {
    _id: payment_id,
    ...facts,
    ...request,
    ...openingOf(session),
    position: positionAt(input.created_at, 0, tieBase(1)),
    failure,
    refunded: 0,
    authorized_at: null,
    settled_at: null,
    cancelled_at: null,
    updated_at: input.created_at,
    bank_reference: opened?.bank_reference ?? null,
    session_url: opened?.session_url ?? null,
    token_hash: payTokenHash(payToken(payTokenKey, payment_id)),
    browser_hash: null,
    opened_at: null,
    attention: null,
    audit: [],
  };
}

/** State and version that a payment is first written with, by the bank's first answer. */
export function openingOf(session: SessionAnswer | null): PaymentStanding {
  if (session === null) return { status: 'created', version: 1 };
  const status = session.outcome === 'opened' ? 'awaiting_customer' : 'failed';
  return { status, version: 2 };
}

/** What events of this payment carry. */
export function happeningOf(payment: Pick<PaymentDocument, '_id' | 'account_id' | 'livemode'>) {
  const { _id, account_id, livemode } = payment;
  const data = { payment_id: _id };
  return { resource: 'payment' as const, resource_id: _id, account_id, livemode, data };
}

/** The events of moves made at once; `created` emits none. */
export function movesTo(to: readonly PaymentStatus[], fromVersion: number) {
  return to.flatMap((status, index) => {
    const type = PAYMENT_EVENTS[status];
    return type === undefined ? [] : [{ type, version: fromVersion + index + 1 }];
  });
}

/** What a move changes in the document. */
export function changeOf(
  input: RecordMove,
  status: PaymentStatus,
  version: number,
): Partial<PaymentDocument> {
  const { at, to, attention, failure, bank_reference, session_url } = input;
  return {
    status,
    version,
    updated_at: at,
    attention,
    ...(to.includes('authorized') ? { authorized_at: at } : {}),
    ...(to.includes('settled') ? { settled_at: at } : {}),
    ...(to.includes('cancelled') ? { cancelled_at: at } : {}),
    ...(failure === undefined ? {} : { failure }),
    ...(bank_reference === undefined ? {} : { bank_reference }),
    ...(session_url === undefined ? {} : { session_url }),
  };
}

/** What a workflow that starts again needs to know. */
export function factsOf(payment: PaymentDocument, request_id: string) {
  const { _id, account_id, livemode, amount, currency, method, country, connector } = payment;
  return {
    payment_id: _id,
    ...{ account_id, livemode, amount, currency, method, country, connector },
    expires_at_ms: Date.parse(payment.expires_at),
    settlement_due_seconds: settlementDue(method),
    request_id,
  };
}

function settlementDue(method: string): number {
  return isPaymentMethodId(method) ? methodRules(method).settlement_due_seconds : 0;
}

/** The settled payment credits the merchant. */
export function settlementOf(payment: PaymentDocument, at: string): PostingOf {
  const { _id: resource_id, account_id, livemode, currency, connector, amount } = payment;
  const legs = LEGS.payment_settled(connector, amount);
  return { kind: 'payment_settled', resource_id, account_id, livemode, currency, at, legs };
}
