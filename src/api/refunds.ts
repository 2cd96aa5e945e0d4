import { isPaymentMethodId, methodRules } from '../domain/catalogue';
import type { ClaimedRefund } from '../domain/creation';
import { refundFault } from '../domain/refund-rules';
import {
  type CreateRefund,
  createRefund,
  getRefund,
  listPaymentRefunds,
  listRefunds,
} from '../domain/wire/refunds';
import type { PaymentDocument } from '../store/payments';
import type { ApiDeps } from './context';
import { refusalOf } from './errors';
import type { CreateHandlers } from './make-once';
import type { Mount } from './mount';
import { paymentReader } from './payments';
import { presentRefund } from './present';
import { resourceReader } from './reader';

/** @see docs/api.md#refunds */
export function mountRefunds(mount: Mount, deps: ApiDeps): void {
  const { find: findPayment } = paymentReader(deps);
  const { read, list } = refundReader(deps);

  mount.create(createRefund, refundHandlers(deps));
  mount.endpoint(getRefund, read);
  mount.endpoint(listRefunds, list);
  mount.endpoint(listPaymentRefunds, async (call) => {
    const { _id: payment_id } = await findPayment(call.params.id, call.key);
    return await list(call, { payment_id });
  });
}

/** Steps that make a refund, for each door. */
export function refundHandlers(deps: ApiDeps): CreateHandlers<typeof createRefund> {
  const { find: findPayment } = paymentReader(deps);
  const { made, present } = refundReader(deps);
  return {
    accept: async ({ key, body }) =>
      acceptRefund(await findPayment(body.payment_id, key), body, deps.now()),
    create: async ({ key, requestId: request_id, mark }, refund_id, { request }) => {
      if (request !== null && 'refund' in request) {
        await deps.temporal.openRefund({ ...request.routing, refund_id, request_id }, mark);
      }
      return { answer: present(await made(refund_id, key)) };
    },
  };
}

/** Reader of refunds, as one account and environment may see them. */
export function refundReader({ stores }: ApiDeps) {
  return resourceReader(stores.refunds, presentRefund, 'refund');
}

/**
 * Checks the rules of refunds before any bank is called. The reservation checks the amount again,
 * beside other refunds; the window is measured against `at`.
 * @throws Refusal 422
 * @see docs/api.md#refunds
 */
function acceptRefund(payment: PaymentDocument, body: CreateRefund, at: Date): ClaimedRefund {
  const { account_id, livemode, currency, method, connector } = payment;
  const amount = body.amount ?? null;
  // Payments from before the count of refunds lack it.
  const fault = refundFault({ ...payment, refunded: payment.refunded ?? 0 }, amount, at);
  if (fault !== undefined) throw refusalOf(fault);
  if (!isPaymentMethodId(method)) throw new RangeError(`No method of the catalogue: ${method}`);
  return {
    refund: { reason: body.reason ?? null },
    routing: {
      account_id,
      livemode,
      amount,
      currency,
      method,
      connector,
      payment_id: payment._id,
      accepted_at: at.toISOString(),
      due_seconds: methodRules(method).refund_due_seconds,
    },
  };
}
