import { buildRefusal } from '../../domain/errors';
import { isPaymentMethodId, methodRules } from '../../domain/payment/catalog';
import { refundFault } from '../../domain/refund/refund';
import * as wire from '../../domain/wire/refunds';
import type { RefundDocument } from '../../store/refunds';
import type { MerchantDeps, Owner } from '../access';
import { type CreateRequest, createOnce } from '../create-once';
import { accountNow } from '../merchants/clock';
import { getPayment } from './payments';
import { presentRefund } from './present';
import { createGet, createList, findCreated, listPage, type Page, type PageQuery } from './read';

/**
 * @throws Refusal 404, 422; 503 `temporarily_unavailable`: outcome unknown
 * @see docs/api.md#refunds
 */
export function createRefund(deps: MerchantDeps, request: CreateRequest<wire.CreateRefund>) {
  const { caller, requestId: request_id } = request;
  return createOnce(deps, request, {
    operation: wire.createRefund.operation,
    // Before any bank is called; the reservation checks again, with other refunds.
    accept: async (body) => {
      const payment = await getPayment(deps, caller, body.payment_id);
      const at = await accountNow(deps, caller);
      const { account_id, livemode, currency, method, connector } = payment;
      const amount = body.amount ?? null;
      const fault = refundFault(payment, amount, at);
      if (fault !== undefined) throw buildRefusal(fault);
      if (!isPaymentMethodId(method)) throw new RangeError(`No method of the catalog: ${method}`);
      return {
        refund: { reason: body.reason ?? null },
        routing: {
          ...{ account_id, livemode, amount, currency, method, connector },
          payment_id: payment._id,
          accepted_at: at.toISOString(),
          due_seconds: methodRules(method).refund_due_seconds,
        },
      };
    },
    open: async ({ record: { resource_id: refund_id, request: accepted }, hashes }) => {
      if (accepted !== null && 'refund' in accepted) {
        await deps.temporal.openRefund({ ...accepted.routing, refund_id, request_id }, hashes);
      }
      const refund = await findCreated(deps.stores.refunds, 'refund', caller, refund_id);
      return { answer: presentRefund(refund) };
    },
  });
}

/** @throws Refusal 404 */
export const getRefund = createGet('refund', ({ refunds }) => refunds);
export const listRefunds = createList(({ refunds }) => refunds);

/** @throws Refusal 404 when there is no such payment */
export async function listPaymentRefunds(
  deps: Pick<MerchantDeps, 'stores'>,
  caller: Owner,
  id: string,
  query: PageQuery,
): Promise<Page<RefundDocument>> {
  const { _id: payment_id } = await getPayment(deps, caller, id);
  return await listPage(deps.stores.refunds, caller, query, { payment_id });
}
