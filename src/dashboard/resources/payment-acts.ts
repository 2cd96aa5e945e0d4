import { Refusal } from '../../domain/errors';
import { parseMoney } from '../../domain/money';
import type { DashboardDeps } from '../deps';
import { field } from '../form';
import { FORM_KEY, isUnknown } from '../once';
import type { Answer, Call, Route } from '../route';

export const PAYMENT_ACT_ROUTES: readonly Route[] = [
  {
    method: 'post',
    path: '/payments/:id/refund',
    act: 'payments.refund',
    title: 'Refund the payment',
    ask: {
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
    ask: {
      question: "Cancel this payment? Its customer can't pay it any more.",
      button: 'Cancel payment',
    },
    handle: cancel,
  },
];

/** Refunds by the key of the form, so that a form that is sent twice refunds once. */
async function refund(call: Call, deps: DashboardDeps): Promise<Answer> {
  const { scope, params, form, href, requestId } = call;
  const { account_id, livemode } = scope;
  const { id: payment_id = '' } = params;
  const payment = await deps.stores.payments.find(payment_id, account_id, livemode);
  if (payment === null) return 'not_found';
  const key = field(form, 'key');
  const amount = parseMoney(field(form, 'amount'), payment.currency);
  const back = href(`/payments/${payment_id}`);
  if (amount === undefined || !FORM_KEY.test(key)) {
    const text = `Write the amount as a number, such as 10.50. Nothing was refunded.`;
    return { go: back, flash: { tone: 'bad', text } };
  }
  const reason = field(form, 'reason') || undefined;
  try {
    const wish = { account_id, livemode, key, requestId, payment_id, amount, reason };
    const { currency } = payment;
    const after = { amount, currency, idempotency_key: key };
    const line = { act: 'refund.created', account_id, livemode, target: payment_id } as const;
    await call.audit({ ...line, after });
    const refund_id = await deps.acts.refund(wish);
    const text = 'The refund is on its way. Its status tells when it has settled.';
    return { go: href(`/refunds/${refund_id}`), flash: { tone: 'good', text } };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    if (!isUnknown(error)) return { go: back, flash: { tone: 'bad', text: error.message } };
    const text =
      'It is not known yet whether the refund was made. Press Refund again with the same amount ' +
      'and reason: it is not made twice.';
    return { go: `${back}?refund_key=${key}`, flash: { tone: 'bad', text } };
  }
}

async function cancel(call: Call, deps: DashboardDeps): Promise<Answer> {
  const { scope, params, href } = call;
  const { id: payment_id = '' } = params;
  const { account_id, livemode } = scope;
  if ((await deps.stores.payments.find(payment_id, account_id, livemode)) === null) {
    return 'not_found';
  }
  const go = href(`/payments/${payment_id}`);
  try {
    const line = { act: 'payment.cancelled', account_id, livemode, target: payment_id } as const;
    await call.audit(line);
    await deps.acts.cancel({ account_id, livemode, payment_id });
    return { go, flash: { tone: 'good', text: 'The payment is cancelled.' } };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const text = isUnknown(error)
      ? 'It is not known yet whether the payment was cancelled. Look at its status, and try again.'
      : error.message;
    return { go, flash: { tone: 'bad', text } };
  }
}
