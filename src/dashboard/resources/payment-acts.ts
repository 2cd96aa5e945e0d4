import { omitUndefined } from '../../domain/defined';
import { parseMoney } from '../../domain/money';
import { CreateRefund } from '../../domain/wire/refunds';
import { cancelPayment, findPayment } from '../../service/money/payments';
import { createRefund } from '../../service/money/refunds';
import { createInShare } from '../../service/shares';
import { actOnMoney, buildCreateRequest, FORM_KEY, field, redirect } from '../frame/form';
import type { Answer, Call, DashboardDeps, PageDeps, Route } from '../frame/route';

export const PAYMENT_ACT_ROUTES: readonly Route[] = [
  {
    method: 'post',
    path: '/payments/:id/refund',
    act: 'payments.refund',
    title: 'Refund the payment',
    confirmation: {
      question: (form) =>
        `Refund ${field(form, 'amount')} to the customer? A refund can't be taken back.`,
      button: 'Refund',
      proof: findRefundProof,
    },
    handle: refund,
  },
  {
    method: 'post',
    path: '/payments/:id/cancel',
    act: 'payments.cancel',
    title: 'Cancel the payment',
    confirmation: {
      question: "Cancel this payment? Its customer can't pay it any more.",
      button: 'Cancel payment',
    },
    handle: cancel,
  },
];

async function findRefundProof({ viewer, scope, params, form }: Call, deps: DashboardDeps) {
  const { id = '' } = params;
  const payment = scope.livemode ? await findPayment(deps, scope, id) : null;
  const limit = payment === null ? undefined : viewer.account.refundStepUp[payment.currency];
  if (payment === null || limit === undefined) return undefined;
  const amount = parseMoney(field(form, 'amount'), payment.currency);
  return amount !== undefined && amount <= limit ? undefined : 'step_up';
}

/** Refunds under the form key, so that a repeated form refunds once. */
async function refund(call: Call, deps: PageDeps): Promise<Answer> {
  const { scope, params, form } = call;
  const { id: payment_id = '' } = params;
  const payment = await findPayment(deps, scope, payment_id);
  if (payment === null) return 'not_found';
  const { currency } = payment;
  const key = field(form, 'key');
  const amount = parseMoney(field(form, 'amount'), currency);
  const path = `/payments/${payment_id}`;
  if (amount === undefined || !FORM_KEY.test(key)) {
    const text = 'Write the amount as a number, such as 10.50. Nothing was refunded.';
    return redirect(call, path, 'bad', text);
  }
  const reason = field(form, 'reason') || undefined;
  const fields = omitUndefined({ payment_id, amount, reason });
  const request = buildCreateRequest(call, key, CreateRefund, fields);
  return await actOnMoney(deps, call, {
    act: 'refund.created',
    target: payment_id,
    facts: { amount, currency, idempotency_key: key },
    run: () => createInShare(deps, request, () => createRefund(deps, request)),
    success: ({ id }) => [
      `/refunds/${id}`,
      'The refund has started. Its status shows when it has settled.',
    ],
    unknown: [
      `${path}?refund_key=${key}`,
      'It is not known yet whether the refund was made. Press Refund again with the same amount ' +
        'and reason: it is not made twice.',
    ],
    refusedPath: path,
  });
}

async function cancel(call: Call, deps: PageDeps): Promise<Answer> {
  const { id: payment_id = '' } = call.params;
  if ((await findPayment(deps, call.scope, payment_id)) === null) return 'not_found';
  const path = `/payments/${payment_id}`;
  return await actOnMoney(deps, call, {
    act: 'payment.cancelled',
    target: payment_id,
    run: async () => {
      await cancelPayment(deps, call.scope, payment_id);
      return {};
    },
    success: () => [path, 'The payment is cancelled.'],
    unknown: [
      path,
      'It is not known yet whether the payment was cancelled. Look at its status, and try again.',
    ],
    refusedPath: path,
  });
}
