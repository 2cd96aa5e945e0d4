import { formatMoney } from '../domain/money';
import { isPaymentMethodId, methodRules } from '../domain/payment/catalog';
import type { PaymentStatus } from '../domain/payment/payment';
import type { PaymentDocument } from '../service/payment-pages';
import { Icon, type IconName } from './icons';
import { Detail, Monogram, renderPage } from './layout';
import { bankUrl } from './page-access';

export interface PayAssets {
  css: string;
  js: string;
}

export interface PayPageProps {
  payment: PaymentDocument;
  merchant: string;
  assets: PayAssets;
}

const FOOTER = 'Secure payment page. This link works once.';

export function payPage({ payment, merchant, assets }: PayPageProps, action: string): string {
  const { name, icon } = getMethod(payment.method);
  const amount = formatMoney(payment.amount, payment.currency);
  return renderPage({
    title: `Pay ${amount} to ${merchant}`,
    ...shell(payment, assets),
    children: (
      <>
        <Monogram name={merchant} />
        <h1 class="lines">
          <span class="muted small">Amount to pay</span>
          <span class="amount">{amount}</span>
        </h1>
        <dl>
          <Detail name="Pay with">
            <span class="method">
              <Icon name={icon} />
              {name}
            </span>
          </Detail>
          {payment.reference !== null && <Detail name="Reference">{payment.reference}</Detail>}
        </dl>
        <div class="stack">
          <form method="post" action={action}>
            <button type="submit" data-busy={`Opening ${name}…`}>
              Continue to {name}
            </button>
          </form>
          <Cancel action={`${action}/cancel`} />
        </div>
      </>
    ),
  });
}

/** Page shown until the bank has opened its session. */
export function openingPage(props: PayPageProps, path: string): string {
  const { payment, assets } = props;
  const { name } = getMethod(payment.method);
  const sessionUrl = bankUrl(payment);
  return renderPage({
    title: `Opening ${name}`,
    ...shell(payment, assets),
    reloadAfter: sessionUrl === null ? 2 : undefined,
    goTo: sessionUrl ?? undefined,
    children: (
      <>
        <Summary {...props} />
        <h1>Opening {name}</h1>
        {sessionUrl === null ? (
          <Waiting poll={`${path}/status`} later="This takes longer than usual. Please stay here.">
            The bank is preparing your payment. You will be taken there.
          </Waiting>
        ) : (
          <a class="button" href={sessionUrl}>
            Continue to {name}
          </a>
        )}
        <Cancel action={`${path}/cancel`} />
      </>
    ),
  });
}

/** Page for a customer who returns before the bank's answer. */
export function returnPage(props: PayPageProps, path: string): string {
  const { payment, assets } = props;
  const bank = bankUrl(payment);
  return renderPage({
    title: 'Waiting for the bank’s answer',
    ...shell(payment, assets),
    reloadAfter: 2,
    children: (
      <>
        <Summary {...props} />
        <h1>Waiting for the bank’s answer</h1>
        <Waiting
          poll={`${path}/status`}
          later="No answer yet. If you haven’t paid, go back to the bank or cancel the payment."
        >
          This page goes on by itself as soon as the bank answers.
        </Waiting>
        <div class="stack">
          {bank !== null && (
            <a class="button plain" href={bank}>
              Back to the bank
            </a>
          )}
          <Cancel action={`${path}/cancel`} />
        </div>
      </>
    ),
  });
}

const OUTCOMES: Record<PaymentStatus, { title: string; icon: IconName; tone: string }> = {
  created: { title: 'This payment is open', icon: 'clock', tone: '' },
  awaiting_customer: { title: 'This payment is open', icon: 'clock', tone: '' },
  authorized: { title: 'You have paid', icon: 'check', tone: 'good' },
  settled: { title: 'You have paid', icon: 'check', tone: 'good' },
  failed: { title: 'The payment did not go through', icon: 'cross', tone: 'bad' },
  cancelled: { title: 'The payment was cancelled', icon: 'cross', tone: '' },
  expired: { title: 'This payment has expired', icon: 'clock', tone: '' },
};

export function outcomePage(props: PayPageProps, onward: string | null): string {
  const { payment, merchant, assets } = props;
  const { title, icon, tone } = OUTCOMES[payment.status];
  return renderPage({
    title,
    ...shell(payment, assets),
    children: (
      <>
        <div class={`sign ${tone}`}>
          <Icon name={icon} size={28} />
        </div>
        <h1>{title}</h1>
        <Summary {...props} />
        {onward !== null && (
          <a class="button" href={onward}>
            Back to {merchant}
          </a>
        )}
      </>
    ),
  });
}

function Summary({ payment, merchant }: PayPageProps) {
  return (
    <p class="muted">
      {formatMoney(payment.amount, payment.currency)} to {merchant}
    </p>
  );
}

function Waiting({ poll, later, children }: { poll: string; later: string; children: string }) {
  return (
    <div class="stack" data-poll={poll} aria-live="polite">
      <progress aria-label="Waiting" />
      <p class="muted">{children}</p>
      <p data-later hidden>
        {later}
      </p>
    </div>
  );
}

function Cancel({ action }: { action: string }) {
  return (
    <form method="post" action={action}>
      <button class="quiet" type="submit" data-busy="Cancelling…">
        Cancel payment
      </button>
    </form>
  );
}

function shell(payment: PaymentDocument, assets: PayAssets) {
  return {
    stylesheet: assets.css,
    script: assets.js,
    footer: FOOTER,
    banner: payment.livemode ? undefined : 'Sandbox: this is a test, no money moves.',
  };
}

function getMethod(method: string): { name: string; icon: IconName } {
  if (!isPaymentMethodId(method)) return { name: 'your bank', icon: 'bank_selector' };
  const { display_name, page } = methodRules(method);
  return { name: display_name, icon: page };
}
