import { isPaymentMethodId, methodRules } from '../domain/catalogue';
import type { RefundCreation } from '../domain/creation';
import { Refusal } from '../domain/errors';
import { refundFault } from '../domain/refund-rules';
import {
  type CreateRefund,
  createRefund,
  getRefund,
  listPaymentRefunds,
  listRefunds,
} from '../domain/wire/refunds';
import type { KeyDocument } from '../store/keys';
import type { PaymentDocument } from '../store/payments';
import type { RefundDocument } from '../store/refunds';
import type { ApiDeps } from './context';
import type { Mount } from './mount';
import { paymentReader } from './payments';
import { presentPage, presentRefund } from './present';

/** @see spec §4.3 */
export function mountRefunds(mount: Mount, deps: ApiDeps): void {
  const { refunds } = deps.stores;
  const { find: findPayment } = paymentReader(deps);
  const { present, find } = refundReader(deps);

  mount.creator(createRefund, {
    accept: async ({ key, body }) =>
      acceptRefund(await findPayment(body.payment_id, key), body, deps.now()),
    create: async ({ key, requestId: request_id }, refund_id, request) => {
      if (request !== null) {
        await deps.temporal.openRefund({ ...request.routing, refund_id, request_id });
      }
      return present(await find(refund_id, key));
    },
  });

  mount.endpoint(getRefund, async ({ key, params }) => present(await find(params.id, key)));

  const page = async (
    { account_id, livemode }: KeyDocument,
    query: { limit: number; status?: string | undefined; created_before?: string | undefined },
    of: { payment_id?: string } = {},
  ) => {
    const { created_before: before, limit, ...filter } = query;
    const wanted = { account_id, livemode, ...of, ...filter, before };
    return presentPage(await refunds.list({ ...wanted, limit: limit + 1 }), limit, present);
  };

  mount.endpoint(listRefunds, ({ key, query }) => page(key, query));

  mount.endpoint(listPaymentRefunds, async ({ key, params, query }) => {
    const { _id: payment_id } = await findPayment(params.id, key);
    return await page(key, query, { payment_id });
  });
}

/** One refund, as one account and environment may see it. */
export function refundReader({ stores }: ApiDeps) {
  return {
    present: presentRefund,
    /** @throws Refusal 404, also for another account's or environment's id */
    find: async (id: string, { account_id, livemode }: KeyDocument): Promise<RefundDocument> => {
      const refund = await stores.refunds.find(id, account_id, livemode);
      if (refund === null) throw new Refusal('refund_not_found', 'There is no such refund.');
      return refund;
    },
  };
}

/**
 * Refused here before any bank is called. What other refunds do meanwhile is decided when the
 * amount is reserved; the window counts against the moment noted here.
 * @throws Refusal 422
 * @see spec §4.3 rule 3
 */
function acceptRefund(payment: PaymentDocument, body: CreateRefund, at: Date): RefundCreation {
  const { account_id, livemode, currency, method, connector } = payment;
  const amount = body.amount ?? null;
  // A payment may be older than its count of refunds.
  const fault = refundFault({ ...payment, refunded: payment.refunded ?? 0 }, amount, at);
  if (fault !== undefined) throw new Refusal(fault.code, fault.message);
  if (!isPaymentMethodId(method)) throw new RangeError(`No method of the catalogue: ${method}`);
  return {
    refund: { reason: body.reason ?? null },
    routing: {
      ...{ account_id, livemode, amount, currency, method, connector },
      payment_id: payment._id,
      accepted_at: at.toISOString(),
      due_seconds: methodRules(method).refund_due_seconds,
    },
  };
}
