import { isPaymentMethodId, methodRules, settlesSoon } from '../domain/catalogue';
import type { ClaimedPayment, KeptCustomer } from '../domain/creation';
import { Refusal, unavailable } from '../domain/errors';
import { isCancellable } from '../domain/payment';
import { checkMethodRequirements } from '../domain/payment-rules';
import type { PaymentOpening } from '../domain/payment-workflow';
import {
  type CreatePayment,
  cancelPayment,
  createPayment,
  getPayment,
  listPayments,
} from '../domain/wire/payments';
import { markedLink } from '../keys/claim-mark';
import { tokenKey } from '../keys/pay-token';
import { noPayer } from '../merchants/payers';
import { availableMethods } from '../routing';
import type { KeyDocument, KeyOwner } from '../store/keys';
import type { PaymentDocument } from '../store/payments';
import type { ApiDeps } from './context';
import type { Made } from './make-once';
import type { Mount } from './mount';
import { asOpened, type PaymentFields, presentPayment } from './present';
import { resourceReader } from './reader';

/** @see docs/api.md#create-a-payment */
export function mountPayments(mount: Mount, deps: ApiDeps): void {
  const { temporal, config } = deps;
  const { present, presentFields, presentTo, made, read, list } = paymentReader(deps);

  /** Reads the payment; where its first answer's facts are kept, it is shown as it was then. */
  const madeBefore = async (
    id: string,
    key: KeyOwner,
    opening: PaymentOpening | undefined,
  ): Promise<Made> => {
    const payment = await made(id, key);
    if (opening === undefined) return { answer: await present(payment), isPersonal: true };
    return { answer: await present(asOpened(payment, opening)), isKept: true };
  };

  mount.create(createPayment, {
    accept: ({ key, body, id }) => acceptPayment(deps, key, body, id),
    create: async ({ key, requestId: request_id, mark }, payment_id, { request, opening }) => {
      if (request === null || !('stored' in request)) {
        return await madeBefore(payment_id, key, opening);
      }
      const return_url = `${config.PUBLIC_URL}/pay/return/${payment_id}`;
      const { routing, stored } = request;
      const opened = await temporal.openPayment(
        { ...routing, payment_id, return_url, request_id },
        markedLink(mark, stored),
      );
      if (opened?.opening === undefined) {
        const claim = await deps.stores.idempotency.forResource(payment_id);
        return await madeBefore(payment_id, key, claim?.opening);
      }
      const payment = { _id: payment_id, ...routing, ...stored };
      return { answer: await presentFields(asOpened(payment, opened.opening)), isKept: true };
    },
  });

  mount.endpoint(getPayment, read);
  mount.endpoint(listPayments, list);

  mount.endpoint(
    cancelPayment,
    async ({ key, params }) => await presentTo(await cancel(deps, params.id, key), key),
  );
}

/**
 * Cancels a payment for its merchant; one that is cancelled already stays so.
 * @throws Refusal 404; 422 `cannot_cancel`; 503 `temporarily_unavailable`: outcome unknown
 */
export async function cancel(deps: ApiDeps, id: string, owner: KeyOwner): Promise<PaymentDocument> {
  const { find } = paymentReader(deps);
  const payment = await find(id, owner);
  if (payment.status === 'cancelled') return payment;
  await deps.temporal.cancelPayment(payment._id, 'merchant');
  const now = await find(id, owner);
  if (now.status === 'cancelled') return now;
  if (isCancellable(now.status)) {
    const cause = new Error('No workflow runs for a payment that is in flight.');
    throw unavailable('The payment could not be reached.', cause);
  }
  throw new Refusal('cannot_cancel', cannotCancel(now));
}

function cannotCancel({ status }: PaymentDocument): string {
  const paid = status === 'authorized' || status === 'settled';
  return `The payment is ${status}; it can no longer be cancelled.${paid ? ' Refund it instead.' : ''}`;
}

type ShownPayment = PaymentFields & KeyOwner & { customer: KeptCustomer };

/** Reader of payments, as one account and environment may see them. */
export function paymentReader({ stores, config, keys, payers }: ApiDeps) {
  const presentation = { publicUrl: config.PUBLIC_URL, payTokens: keys.pay_token };
  const present = async (payment: ShownPayment) =>
    presentPayment(presentation, payment, await payers.open(payment));
  /** Presents the answer to an act; its payer is for keys that may read payments. */
  const presentTo = (payment: PaymentDocument, { scopes }: Pick<KeyDocument, 'scopes'>) => {
    const { customer } = payment;
    const shown = scopes.includes('payments:read') ? customer : noPayer(customer.reference);
    return present({ ...payment, customer: shown });
  };
  const reader = resourceReader<PaymentDocument>(stores.payments, present, 'payment');
  return { ...reader, presentFields: present, presentTo };
}

/**
 * Checks the request against the catalogue that the API shows, before any bank is called.
 * @throws Refusal 422 `method_requirements_not_met`
 * @see docs/api.md#create-a-payment
 */
async function acceptPayment(
  { stores, connectors, payers, keys }: ApiDeps,
  { account_id, livemode }: KeyOwner,
  body: CreatePayment,
  id: string,
): Promise<ClaimedPayment> {
  const account = await stores.accounts.known(account_id);
  const enabled = availableMethods(connectors, account?.enabled_methods ?? [], livemode);
  const { method, amount, currency, country, customer } = body;
  const details = checkMethodRequirements(
    { method, currency, country, email: customer?.email },
    new Set<string>(enabled),
  );
  const connector = connectors.serving(method, livemode);
  if (details.length > 0 || connector === undefined || !isPaymentMethodId(method)) {
    const message = 'The request does not meet the requirements of the payment method.';
    throw new Refusal('method_requirements_not_met', message, { details });
  }
  const { expires_in_seconds, settlement_due_seconds } = methodRules(method);
  const stored = storedRequest(body);
  const payer = await payers.seal({ account_id, livemode }, id, stored.customer);
  return {
    stored: { ...stored, customer: payer, ...tokenKey(keys.pay_token) },
    routing: {
      account_id,
      livemode,
      amount,
      currency,
      method,
      connector,
      country: country ?? null,
      expires_in_seconds,
      settlement_due_seconds,
      ...(settlesSoon(method) ? { settles_soon: true } : {}),
    },
  };
}

function storedRequest({ reference, customer, metadata, success_url, error_url }: CreatePayment) {
  return {
    reference: reference ?? null,
    customer: {
      email: customer?.email ?? null,
      first_name: customer?.first_name ?? null,
      last_name: customer?.last_name ?? null,
      reference: customer?.reference ?? null,
    },
    metadata: metadata?.kind === 'object' ? metadata.text : '{}',
    success_url,
    error_url,
  };
}
