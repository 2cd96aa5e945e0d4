import { checkMethodRequirements, isPaymentMethodId, methodRules } from '../domain/catalogue';
import type { ClaimedPayment } from '../domain/creation';
import { Refusal, unavailable } from '../domain/errors';
import { isCancellable } from '../domain/payment';
import {
  type CreatePayment,
  cancelPayment,
  createPayment,
  getPayment,
  listPayments,
} from '../domain/wire/payments';
import { availableMethods } from '../routing';
import type { KeyDocument } from '../store/keys';
import type { PaymentDocument } from '../store/payments';
import type { ApiDeps } from './context';
import type { Mount } from './mount';
import { presentPayment } from './present';
import { resourceReader } from './reader';

/** @see docs/api.md#create-a-payment */
export function mountPayments(mount: Mount, deps: ApiDeps): void {
  const { temporal, config } = deps;
  const { find, present, made, read, list } = paymentReader(deps);

  mount.create(createPayment, {
    accept: ({ key, body }) => acceptPayment(deps, key, body),
    create: async ({ key, requestId: request_id, mark }, payment_id, request) => {
      if (request !== null && 'stored' in request) {
        const return_url = `${config.PUBLIC_URL}/pay/return/${payment_id}`;
        await temporal.openPayment(
          { ...request.routing, payment_id, return_url, request_id },
          mark,
        );
      }
      return await made(payment_id, key);
    },
  });

  mount.endpoint(getPayment, read);
  mount.endpoint(listPayments, list);

  mount.endpoint(cancelPayment, async ({ key, params }) => {
    const payment = await find(params.id, key);
    if (payment.status === 'cancelled') return present(payment);
    await temporal.cancelPayment(payment._id, 'merchant');
    const now = await find(params.id, key);
    if (now.status === 'cancelled') return present(now);
    if (isCancellable(now.status)) {
      const cause = new Error('No workflow runs for a payment that is in flight.');
      throw unavailable('The payment could not be reached.', cause);
    }
    throw new Refusal('cannot_cancel', cannotCancel(now));
  });
}

function cannotCancel({ status }: PaymentDocument): string {
  const paid = status === 'authorized' || status === 'settled';
  return `The payment is ${status}; it can no longer be cancelled.${paid ? ' Refund it instead.' : ''}`;
}

/** Reader of payments, as one account and environment may see them. */
export function paymentReader({ stores, config, keys }: ApiDeps) {
  const presentation = { publicUrl: config.PUBLIC_URL, payTokenKey: keys.pay_token };
  const present = (payment: PaymentDocument) => presentPayment(presentation, payment);
  return resourceReader(stores.payments, present, 'payment');
}

/**
 * Checks the request against the catalogue that the API shows, before any bank is called.
 * @throws Refusal 422 `method_requirements_not_met`
 * @see docs/api.md#create-a-payment
 */
async function acceptPayment(
  { stores, connectors }: ApiDeps,
  { account_id, livemode }: KeyDocument,
  body: CreatePayment,
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
  return {
    stored: storedRequest(body),
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
