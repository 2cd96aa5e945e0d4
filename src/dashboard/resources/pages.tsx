import { decimalMoney, formatMoney, minorUnitDigits } from '../../domain/money';
import { computeRest } from '../../domain/movement/movement';
import { sumDisputed } from '../../domain/payment/dispute';
import { isCancellable } from '../../domain/payment/payment';
import { refundableAmount, refundFault } from '../../domain/refund/rules';
import {
  type ReadPayment,
  type ReadPayout,
  readPayment,
  readPayout,
  readResource,
} from '../../service/money/resources/read';
import { Field } from '../frame/fields';
import { FORM_KEY, newFormKey } from '../frame/form';
import { Panel, PostForm, Status, Table, When } from '../frame/parts';
import { type Answer, type Call, type PageDeps, type Route, viewRoute } from '../frame/route';
import { methodName } from './kinds';
import { PAYMENT_ACT_ROUTES } from './payment-acts';
import { answerResource, formatFailure } from './resource-page';

export const RESOURCE_ROUTES: readonly Route[] = [
  viewRoute('/payments/:id', 'Payment', showPayment),
  ...PAYMENT_ACT_ROUTES,
  viewRoute('/refunds/:id', 'Refund', showRefund),
  viewRoute('/payouts/:id', 'Payout', showPayout),
];

interface PaymentView extends Pick<ReadPayment, 'refunds' | 'held'> {
  call: Call;
  payment: ReadPayment['resource'];
}

async function showPayment(call: Call, deps: PageDeps): Promise<Answer> {
  const result = await readPayment(deps, call.scope, call.params['id'] ?? '');
  if (result === null) return 'not_found';
  const { resource: payment, customer, refunds, held, timeline } = result;
  const { currency, refunded = 0, settled_amount } = payment;
  const disputed = sumDisputed(payment.disputes);
  const name = [customer.first_name, customer.last_name].filter((part) => part !== null).join(' ');
  return answerResource(call, {
    title: `Payment of ${formatMoney(payment.amount, currency)}`,
    status: payment.status,
    attention: payment.attention,
    timeline,
    facts: [
      ['Id', <code key="id">{payment._id}</code>],
      ['Reference', payment.reference ?? '–'],
      ['Method', methodName(payment.method)],
      ['Country', payment.country ?? '–'],
      ['Customer', [name, customer.email].filter((part) => part).join(', ') || '–'],
      ['Refunded', refunded > 0 ? formatMoney(refunded, currency) : null],
      ['Came', settled_amount == null ? null : formatMoney(settled_amount, currency)],
      ['In suspense', formatHeld(held)],
      ['Disputed', disputed > 0 ? formatMoney(disputed, currency) : null],
      ['Reason', formatFailure(payment.failure)],
      ['Bank reference', payment.bank_reference ?? '–'],
      ['Metadata', <code key="metadata">{payment.metadata}</code>],
      ['Created', <When key="created" at={payment.created_at} />],
      ['Settled', <When key="settled" at={payment.settled_at} />],
    ],
    children: (
      <>
        <Acts call={call} payment={payment} held={held} />
        {refunds.length > 0 && <Refunds call={call} refunds={refunds} />}
      </>
    ),
  });
}

function formatHeld(held: PaymentView['held']): string | null {
  const amounts = held.map((movement) => formatMoney(computeRest(movement), movement.currency));
  return amounts.join(', ') || null;
}

function Acts({ call, payment, held }: Pick<PaymentView, 'call' | 'payment' | 'held'>) {
  const { now, may } = call;
  const { _id, currency, status, refunded } = payment;
  const isRefundable = refundFault({ ...payment, refunded }, null, now) === undefined;
  if (isRefundable && may('payments.refund')) {
    const remaining = refundableAmount(payment) - refunded;
    return (
      <Panel title="Refund">
        <PostForm
          call={call}
          path={`/payments/${_id}/refund`}
          button="Refund"
          busy="Refunding…"
          hidden={{ key: getFormKey(call) }}
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
      <PostForm
        call={call}
        path={`/payments/${_id}/cancel`}
        button="Cancel payment"
        tone="danger"
      />
    </Panel>
  );
}

/** Reuses the key of a refund whose outcome is unknown. */
function getFormKey({ query }: Call): string {
  const key = query.get('refund_key') ?? '';
  return FORM_KEY.test(key) ? key : newFormKey();
}

function Refunds({ call, refunds }: Pick<PaymentView, 'call' | 'refunds'>) {
  return (
    <Panel title="Refunds of this payment">
      <Table
        label="Refunds of this payment"
        head={['Id', 'Amount', 'Status', 'Created']}
        rows={refunds.map(({ _id, amount, currency, status, created_at }) => ({
          key: _id,
          href: call.href(`/refunds/${_id}`),
          cells: [
            <code key="id">{_id}</code>,
            formatMoney(amount, currency),
            <Status key="status" of={status} />,
            <When key="created" at={created_at} />,
          ],
        }))}
        none="None."
      />
    </Panel>
  );
}

async function showRefund(call: Call, deps: PageDeps): Promise<Answer> {
  const result = await readResource(deps, 'refund', call.scope, call.params['id'] ?? '');
  if (result === null) return 'not_found';
  const { resource: refund, timeline } = result;
  const { payment_id } = refund;
  return answerResource(call, {
    title: `Refund of ${formatMoney(refund.amount, refund.currency)}`,
    status: refund.status,
    timeline,
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
}

async function showPayout(call: Call, deps: PageDeps): Promise<Answer> {
  const result = await readPayout(deps, call.scope, call.params['id'] ?? '');
  if (result === null) return 'not_found';
  const { resource: payout, recipient, timeline } = result;
  const { fee, currency, failure, returned } = payout;
  const reason = failure ?? (returned && { ...returned, message: returned.reason });
  return answerResource(call, {
    title: `Payout of ${formatMoney(payout.amount, currency)}`,
    status: payout.status,
    timeline,
    facts: [
      ['Id', <code key="id">{payout._id}</code>],
      ['Reference', payout.reference ?? '–'],
      ['Rail', methodName(payout.method)],
      ['Recipient', recipientText(recipient)],
      ['Fee', formatMoney(fee, currency)],
      ['Balance account', payout.balance_account],
      ['Reason', formatFailure(reason)],
      ['Bank reference', payout.bank_reference ?? '–'],
      ['Metadata', <code key="metadata">{payout.metadata}</code>],
      ['Created', <When key="created" at={payout.created_at} />],
      ['Sent', <When key="sent" at={payout.sent_at} />],
      ['Completed', <When key="completed" at={payout.completed_at} />],
    ],
  });
}

function recipientText(recipient: ReadPayout['recipient']): string {
  if (recipient === null) return '–';
  const { type, scheme, last4, deleted_at } = recipient;
  const kind = type === 'card' ? 'Card' : 'Bank account';
  const name = [kind, scheme, `…${last4}`].filter((part) => part !== null).join(' ');
  return deleted_at ? `${name}, deleted` : name;
}
