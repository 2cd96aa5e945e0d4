import type { Customer } from '../../domain/creation';
import { decimalMoney, formatMoney, minorUnitDigits } from '../../domain/money';
import { isCancellable } from '../../domain/payment';
import { refundableAmount, refundFault } from '../../domain/refund-rules';
import type { PaymentDocument } from '../../store/payments';
import type { RefundDocument } from '../../store/refunds';
import type { DashboardDeps } from '../deps';
import { Field } from '../fields';
import { FORM_KEY, newFormKey } from '../once';
import { Facts, InNeedNote, PageHead, Panel, PostForm, Table, When } from '../parts';
import type { Answer, Call, Route } from '../route';
import { Status } from '../status';
import type { Entry } from '../timeline/assemble';
import { readTimeline } from '../timeline/read';
import { Timeline } from '../timeline/view';
import { methodName } from './kinds';
import { PAYMENT_ACT_ROUTES } from './payment-acts';

const REFUNDS_MAX = 100;

export const PAYMENT_ROUTES: readonly Route[] = [
  { method: 'get', path: '/payments/:id', act: 'view', title: 'Payment', handle: showPayment },
  ...PAYMENT_ACT_ROUTES,
];

interface PaymentView {
  call: Call;
  payment: PaymentDocument;
  customer: Customer;
  refunds: readonly RefundDocument[];
  timeline: readonly Entry[];
}

async function showPayment(call: Call, { stores, payers }: DashboardDeps): Promise<Answer> {
  const { account_id, livemode } = call.scope;
  const { id = '' } = call.params;
  const payment = await stores.payments.find(id, account_id, livemode);
  if (payment === null) return 'not_found';
  const [customer, refunds, timeline] = await Promise.all([
    payers.open(payment),
    stores.refunds.list({ account_id, livemode, payment_id: id, limit: REFUNDS_MAX }),
    readTimeline(stores, 'payment', payment),
  ]);
  const title = `Payment of ${formatMoney(payment.amount, payment.currency)}`;
  return { title, page: <PaymentPage {...{ call, payment, customer, refunds, timeline }} /> };
}

function PaymentPage({ call, payment, customer, refunds, timeline }: PaymentView) {
  const { amount, currency, status, attention } = payment;
  return (
    <>
      <PageHead
        title={`Payment of ${formatMoney(amount, currency)}`}
        badge={<Status of={status} />}
      />
      <InNeedNote attention={attention} />
      <Panel>
        <PaymentFacts payment={payment} customer={customer} />
      </Panel>
      <Acts call={call} payment={payment} />
      {refunds.length > 0 && <Refunds call={call} refunds={refunds} />}
      <Timeline entries={timeline} href={call.href} />
    </>
  );
}

function PaymentFacts({ payment, customer }: Pick<PaymentView, 'payment' | 'customer'>) {
  const { _id, currency, failure, refunded = 0, settled_amount } = payment;
  const name = [customer.first_name, customer.last_name].filter((part) => part !== null).join(' ');
  const rare: [string, string][] = [
    ...(refunded > 0 ? [['Refunded', formatMoney(refunded, currency)] as [string, string]] : []),
    ...(settled_amount == null
      ? []
      : [['Came', formatMoney(settled_amount, currency)] as [string, string]]),
    ...(failure === null
      ? []
      : [['Reason', `${failure.message} (${failure.code})`] as [string, string]]),
  ];
  return (
    <Facts
      rows={[
        ['Id', <code key="id">{_id}</code>],
        ['Reference', payment.reference ?? '–'],
        ['Method', methodName(payment.method)],
        ['Country', payment.country ?? '–'],
        ['Customer', [name, customer.email].filter((part) => part).join(', ') || '–'],
        ...rare,
        ['Bank reference', payment.bank_reference ?? '–'],
        ['Metadata', <code key="metadata">{payment.metadata}</code>],
        ['Created', <When key="created" at={payment.created_at} />],
        ['Settled', <When key="settled" at={payment.settled_at} />],
      ]}
    />
  );
}

/** Forms of what can be done now by the one who looks. */
function Acts({ call, payment }: Pick<PaymentView, 'call' | 'payment'>) {
  const { viewer, href, now, may } = call;
  const { _id, currency, status } = payment;
  const refunded = payment.refunded ?? 0;
  const isRefundable = refundFault({ ...payment, refunded }, null, now) === undefined;
  if (isRefundable && may('payments.refund')) {
    const left = refundableAmount(payment) - refunded;
    return (
      <Panel title="Refund">
        <PostForm
          viewer={viewer}
          action={href(`/payments/${_id}/refund`)}
          button="Refund"
          busy="Refunding…"
          hidden={{ key: keyOf(call) }}
        >
          <Field
            label={`Amount in ${currency}`}
            name="amount"
            inputmode={minorUnitDigits(currency) === 0 ? 'numeric' : 'decimal'}
            value={decimalMoney(left, currency)}
            hint={`Up to ${formatMoney(left, currency)}.`}
            required
          />
          <Field label="Reason" name="reason" maxLength={500} hint="For your own reporting." />
        </PostForm>
      </Panel>
    );
  }
  if (!isCancellable(status) || !may('payments.cancel')) return null;
  return (
    <Panel title="Cancel">
      <p class="muted">The customer has not paid yet.</p>
      <PostForm
        viewer={viewer}
        action={href(`/payments/${_id}/cancel`)}
        button="Cancel payment"
        tone="danger"
      />
    </Panel>
  );
}

/** Key of the form's refund: a new one, or that of a refund whose outcome is not known. */
function keyOf({ query }: Call): string {
  const given = query.get('refund_key') ?? '';
  return FORM_KEY.test(given) ? given : newFormKey();
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
