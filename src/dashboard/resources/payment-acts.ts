import { omitUndefined } from '../../domain/defined';
import { Refusal } from '../../domain/errors';
import { parseMoney } from '../../domain/money';
import { CreateRefund } from '../../domain/wire/refunds';
import { cancelPayment, findPayment } from '../../service/payments';
import { createRefund } from '../../service/refunds';
import type { DashboardDeps } from '../deps';
import { auditOutcome, buildCreateRequest } from '../frame/audited-act';
import { FORM_KEY, field, isOutcomeUnknown } from '../frame/form';
import type { Answer, Call, Route } from '../frame/route';

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

/** Refunds under the form key, so that a repeated form refunds once. */
async function refund(call: Call, deps: DashboardDeps): Promise<Answer> {
  const { scope, params, form, href } = call;
  const { id: payment_id = '' } = params;
  const payment = await findPayment(deps, scope, payment_id);
  if (payment === null) return 'not_found';
  const { currency } = payment;
  const key = field(form, 'key');
  const amount = parseMoney(field(form, 'amount'), currency);
  const back = href(`/payments/${payment_id}`);
  if (amount === undefined || !FORM_KEY.test(key)) {
    const text = `Write the amount as a number, such as 10.50. Nothing was refunded.`;
    return { go: back, flash: { tone: 'bad', text } };
  }
  const reason = field(form, 'reason') || undefined;
  const fields = omitUndefined({ payment_id, amount, reason });
  const request = buildCreateRequest(call, key, CreateRefund, fields);
  const facts = { amount, currency, idempotency_key: key };
  const act = { act: 'refund.created', target: payment_id, facts } as const;
  try {
    const { id } = await auditOutcome(call, act, () => createRefund(deps, request));
    const text = 'The refund has started. Its status shows when it has settled.';
    return { go: href(`/refunds/${id}`), flash: { tone: 'good', text } };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    if (!isOutcomeUnknown(error)) return { go: back, flash: { tone: 'bad', text: error.message } };
    const text =
      'It is not known yet whether the refund was made. Press Refund again with the same amount ' +
      'and reason: it is not made twice.';
    return { go: `${back}?refund_key=${key}`, flash: { tone: 'bad', text } };
  }
}

async function cancel(call: Call, deps: DashboardDeps): Promise<Answer> {
  const { scope, params, href } = call;
  const { id: payment_id = '' } = params;
  if ((await findPayment(deps, scope, payment_id)) === null) return 'not_found';
  const go = href(`/payments/${payment_id}`);
  const act = { act: 'payment.cancelled', target: payment_id } as const;
  try {
    await auditOutcome(call, act, async () => {
      await cancelPayment(deps, scope, payment_id);
      return {};
    });
    return { go, flash: { tone: 'good', text: 'The payment is cancelled.' } };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const text = isOutcomeUnknown(error)
      ? 'It is not known yet whether the payment was cancelled. Look at its status, and try again.'
      : error.message;
    return { go, flash: { tone: 'bad', text } };
  }
}
