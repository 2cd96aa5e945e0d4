import type { PayeeResult } from '../../domain/banks/callback';
import { computeRest } from '../../domain/banks/movement';
import { omitUndefined } from '../../domain/defined';
import { decimalMoney, formatMoney, minorUnitDigits, parseMoney } from '../../domain/money/money';
import { isCancellable } from '../../domain/payment/payment';
import { refundableAmount, refundFault } from '../../domain/refund/refund';
import { CreateRefund } from '../../domain/wire/refunds';
import { tryValidate } from '../../domain/wire/validate';
import { cancelPayment, findPayment } from '../../service/money/payments';
import { createRefund } from '../../service/money/refunds';
import {
  type ReadPayment,
  type ReadPayout,
  readPayment,
  readPayout,
  readResource,
} from '../../service/money/resources/read';
import { createInShare } from '../../service/shares';
import { findDeadline, formatMoved } from '../disputes/disputes';
import { Field } from '../frame/fields';
import { actOnMoney, FORM_KEY, field, newFormKey } from '../frame/form';
import { Panel, PostForm, Table, useCall, When } from '../frame/parts';
import { postRoute, type Route, viewRoute } from '../frame/route';
import { answerResource, commonColumns, formatFailure, methodName } from './kinds';

/** Words for the result of a bank's name check. */
const PAYEE_TEXTS: Record<PayeeResult, string> = {
  match: 'matches',
  close_match: 'is similar',
  no_match: 'is another',
  not_possible: 'could not be checked',
};

export const RESOURCE_ROUTES: readonly Route[] = [
  viewRoute('/payments/:id', 'Payment', async (call, deps) => {
    const result = await readPayment(deps, call.scope, call.id);
    if (result === null) return 'not_found';
    const { resource: payment, customer, refunds, disputes, held } = result;
    const { currency, refunded = 0, settled_amount } = payment;
    const { disputed = 0 } = payment;
    const amountsHeld = held.map((row) => formatMoney(computeRest(row), row.currency));
    const name = [customer.first_name, customer.last_name]
      .filter((part) => part !== null)
      .join(' ');
    return answerResource(call, result, {
      title: `Payment of ${formatMoney(payment.amount, currency)}`,
      attention: payment.attention,
      facts: [
        ['Id', <code key="id">{payment._id}</code>],
        ['Reference', payment.reference ?? '–'],
        ['Method', methodName(payment.method)],
        ['Country', payment.country ?? '–'],
        ['Customer', [name, customer.email].filter((part) => part).join(', ') || '–'],
        ['Refunded', refunded > 0 ? formatMoney(refunded, currency) : null],
        ['Came', settled_amount == null ? null : formatMoney(settled_amount, currency)],
        ['In suspense', amountsHeld.join(', ') || null],
        ['Disputed', disputed > 0 ? formatMoney(disputed, currency) : null],
        ['Reason', formatFailure(payment.failure)],
        ['Bank reference', payment.bank_reference ?? '–'],
        ['Metadata', <code key="metadata">{payment.metadata}</code>],
        ['Created', <When key="created" at={payment.created_at} />],
        ['Settled', <When key="settled" at={payment.settled_at} />],
      ],
      children: (
        <>
          <Acts payment={payment} held={held} />
          {refunds.length > 0 && (
            <Panel title="Refunds of this payment">
              <Table
                label="Refunds of this payment"
                rows={refunds}
                getHref={({ _id }) => call.href(`/refunds/${_id}`)}
                columns={[
                  commonColumns.id,
                  commonColumns.amount,
                  commonColumns.status,
                  commonColumns.created,
                ]}
                none="None."
              />
            </Panel>
          )}
          {disputes.length > 0 && (
            <Panel title="Disputes of this payment">
              <Table
                label="Disputes of this payment"
                rows={disputes}
                getHref={({ _id }) => call.href(`/disputes/${_id}`)}
                columns={[
                  commonColumns.id,
                  ['Withdrawn', (dispute) => formatMoved(dispute, 'out') ?? 'Nothing'],
                  commonColumns.status,
                  ['Answer until', (dispute) => <When at={findDeadline(dispute)} />],
                ]}
                none="None."
              />
            </Panel>
          )}
        </>
      ),
    });
  }),
  postRoute('/payments/:id/refund', 'payments.refund', {
    title: 'Refund the payment',
    confirmation: {
      question: (form) =>
        `Refund ${field(form, 'amount')} to the customer? A refund can't be taken back.`,
      button: 'Refund',
      proof: async ({ viewer, scope, id, form }, deps) => {
        const payment = scope.livemode ? await findPayment(deps, scope, id) : null;
        const limit = payment === null ? undefined : viewer.account.refundStepUp[payment.currency];
        if (payment === null || limit === undefined) return undefined;
        const amount = parseMoney(field(form, 'amount'), payment.currency);
        return amount !== undefined && amount <= limit ? undefined : 'step_up';
      },
    },
    /** Refunds under the form key, so that a repeated form refunds once. */
    handle: async (call, deps) => {
      const { scope, id: payment_id, form } = call;
      const payment = await findPayment(deps, scope, payment_id);
      if (payment === null) return 'not_found';
      const { currency } = payment;
      const key = field(form, 'key');
      const amount = parseMoney(field(form, 'amount'), currency);
      const path = `/payments/${payment_id}`;
      if (amount === undefined || !FORM_KEY.test(key)) {
        const bad = 'Write the amount as a number, such as 10.50. Nothing was refunded.';
        return { go: path, bad };
      }
      const reason = field(form, 'reason') || undefined;
      const refund = omitUndefined({ payment_id, amount, reason });
      const request = {
        ...{ caller: scope, requestId: call.requestId, idempotencyKey: key },
        canonical: JSON.stringify(refund),
        fields: tryValidate(CreateRefund, refund),
      };
      return await actOnMoney(deps, call, {
        act: 'refund.created',
        target: payment_id,
        facts: { amount, currency, idempotency_key: key },
        run: () => createInShare(deps, request, () => createRefund(deps, request)),
        path,
        success: ({ id }) => ({
          go: `/refunds/${id}`,
          good: 'The refund has started. Its status shows when it has settled.',
        }),
        unknown: {
          go: `${path}?refund_key=${key}`,
          bad:
            'It is not known yet whether the refund was made. Press Refund again with the same ' +
            'amount and reason: it is not made twice.',
        },
      });
    },
  }),
  postRoute('/payments/:id/cancel', 'payments.cancel', {
    title: 'Cancel the payment',
    confirmation: {
      question: "Cancel this payment? Its customer can't pay it any more.",
      button: 'Cancel payment',
    },
    handle: async (call, deps) => {
      const { scope, id: target } = call;
      if ((await findPayment(deps, scope, target)) === null) return 'not_found';
      const path = `/payments/${target}`;
      return await actOnMoney(deps, call, {
        ...{ act: 'payment.cancelled', target, path },
        run: () => cancelPayment(deps, scope, target).then(() => ({})),
        success: () => ({ go: path, good: 'The payment is cancelled.' }),
        unknown: {
          go: path,
          bad: 'It is not known yet whether the payment was cancelled. Look at its status, and try again.',
        },
      });
    },
  }),
  viewRoute('/refunds/:id', 'Refund', async (call, deps) => {
    const result = await readResource(deps, 'refund', call.scope, call.id);
    if (result === null) return 'not_found';
    const { resource: refund } = result;
    const { payment_id } = refund;
    return answerResource(call, result, {
      title: `Refund of ${formatMoney(refund.amount, refund.currency)}`,
      facts: [
        ['Id', <code key="id">{refund._id}</code>],
        [
          'Payment',
          <a key="payment" href={call.href(`/payments/${payment_id}`)}>
            <code>{payment_id}</code>
          </a>,
        ],
        ['Reason', refund.reason ?? '–'],
        ['Method', methodName(refund.method)],
        ['Failure', formatFailure(refund.failure)],
        ['Bank reference', refund.bank_reference ?? '–'],
        ['Created', <When key="created" at={refund.created_at} />],
        ['Settled', <When key="settled" at={refund.settled_at} />],
      ],
    });
  }),
  viewRoute('/payouts/:id', 'Payout', async (call, deps) => {
    const result = await readPayout(deps, call.scope, call.id);
    if (result === null) return 'not_found';
    const { resource: payout, recipient } = result;
    const { fee, currency, failure, returned } = payout;
    const reason = failure ?? (returned && { ...returned, message: returned.reason });
    return answerResource(call, result, {
      title: `Payout of ${formatMoney(payout.amount, currency)}`,
      facts: [
        ['Id', <code key="id">{payout._id}</code>],
        ['Reference', payout.reference ?? '–'],
        ['Rail', methodName(payout.method)],
        ['Recipient', recipientText(recipient)],
        ['Fee', formatMoney(fee, currency)],
        ['Balance account', payout.balance_account],
        ['Name of the account', payout.verification && PAYEE_TEXTS[payout.verification.result]],
        ['Reason', formatFailure(reason)],
        ['Bank reference', payout.bank_reference ?? '–'],
        ['Metadata', <code key="metadata">{payout.metadata}</code>],
        ['Created', <When key="created" at={payout.created_at} />],
        ['Sent', <When key="sent" at={payout.sent_at} />],
        ['Completed', <When key="completed" at={payout.completed_at} />],
      ],
    });
  }),
];

interface PaymentView extends Pick<ReadPayment, 'held'> {
  payment: ReadPayment['resource'];
}

function Acts({ payment, held }: PaymentView) {
  const call = useCall();
  const { now, may, query } = call;
  const { _id, currency, status, refunded } = payment;
  const isRefundable = refundFault({ ...payment, refunded }, null, now) === undefined;
  if (isRefundable && may('payments.refund')) {
    const remaining = refundableAmount(payment) - refunded;
    // That of a refund whose outcome is unknown is used again.
    const unknownKey = query.get('refund_key') ?? '';
    const key = FORM_KEY.test(unknownKey) ? unknownKey : newFormKey();
    return (
      <Panel title="Refund">
        <PostForm
          path={`/payments/${_id}/refund`}
          button="Refund"
          busy="Refunding…"
          hidden={{ key }}
        >
          <Field
            label={`Amount in ${currency}`}
            name="amount"
            inputmode={minorUnitDigits(currency) === 0 ? 'numeric' : 'decimal'}
            value={decimalMoney(remaining, currency)}
            hint={`Up to ${formatMoney(remaining, currency)}.`}
            required
          />
          <Field label="Reason" name="reason" maxLength={500} hint="For your own reporting." />
        </PostForm>
      </Panel>
    );
  }
  if (!isCancellable(status) || held.length > 0 || !may('payments.cancel')) return null;
  return (
    <Panel title="Cancel">
      <p class="muted">The customer has not paid yet.</p>
      <PostForm path={`/payments/${_id}/cancel`} button="Cancel payment" tone="danger" />
    </Panel>
  );
}

function recipientText(recipient: ReadPayout['recipient']): string {
  if (recipient === null) return '–';
  const { type, scheme, last4, deleted_at } = recipient;
  const kind = type === 'card' ? 'Card' : 'Bank account';
  const name = [kind, scheme, `…${last4}`].filter((part) => part !== null).join(' ');
  return deleted_at ? `${name}, deleted` : name;
}
