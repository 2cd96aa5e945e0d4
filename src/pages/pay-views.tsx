import { isPaymentMethodId, methodRules } from '../domain/payment/catalog';
import type { PaymentStatus } from '../domain/payment/payment';
import type { PaymentDocument, ShownBrand } from '../service/money/payments';
import { formatMoneyIn, formatTimeIn, type PageLanguage } from './language';
import { Detail, Icon, type IconName, LanguageSwitch, renderPage, Shop } from './layout';
import { fillText, type Texts } from './texts/texts';

export interface PayAssets {
  css: string;
  js: string;
}

export interface PayPageProps {
  payment: PaymentDocument;
  brand: ShownBrand;
  assets: PayAssets;
  language: PageLanguage;
}

export function payPage(props: PayPageProps, action: string): string {
  const { payment, brand, language } = props;
  const { pay, frame } = language.texts;
  const method = describeMethod(payment.method, language.texts);
  const amount = formatMoneyIn(language, payment.amount, payment.currency);
  return renderPage({
    title: fillText(pay.title, { amount, merchant: brand.name }),
    ...shell(props),
    children: (
      <>
        <Shop {...brand} />
        <h1 class="lines">
          <span class="muted small">{pay.amount}</span>
          <span class="amount">{amount}</span>
        </h1>
        <dl>
          <Detail name={pay.method}>
            <span class="method">
              <Icon name={method.icon} />
              {method.name}
            </span>
          </Detail>
          {payment.reference !== null && (
            <Detail name={frame.reference}>{payment.reference}</Detail>
          )}
          <PayBy {...props} />
        </dl>
        <div class="stack">
          <form method="post" action={action}>
            {payment.instructions === undefined ? (
              <button type="submit" data-busy={method.openingBusy}>
                {method.continue}
              </button>
            ) : (
              <button type="submit">{language.texts.transfer.show}</button>
            )}
          </form>
          <Cancel action={`${action}/cancel`} texts={pay} />
        </div>
      </>
    ),
  });
}

/** Page until the bank has opened its session. */
export function openingPage(props: PayPageProps, path: string): string {
  const { payment, language } = props;
  const { wait, pay } = language.texts;
  const method = describeMethod(payment.method, language.texts);
  const sessionUrl = bankUrl(payment);
  return renderPage({
    title: method.opening,
    ...shell(props),
    reloadAfter: sessionUrl === null ? 2 : undefined,
    goTo: sessionUrl ?? undefined,
    children: (
      <>
        <Summary {...props} />
        <h1>{method.opening}</h1>
        {sessionUrl === null ? (
          <Waiting poll={`${path}/status`} label={wait.progress} later={wait.openingLater}>
            {wait.opening}
          </Waiting>
        ) : (
          <a class="button" href={sessionUrl}>
            {method.continue}
          </a>
        )}
        <Cancel action={`${path}/cancel`} texts={pay} />
      </>
    ),
  });
}

/** Page for a customer who returns before the bank's answer. */
export function returnPage(props: PayPageProps, path: string): string {
  const { wait, pay } = props.language.texts;
  const bank = bankUrl(props.payment);
  return renderPage({
    title: wait.title,
    ...shell(props),
    reloadAfter: 2,
    children: (
      <>
        <Summary {...props} />
        <h1>{wait.title}</h1>
        <Waiting poll={`${path}/status`} label={wait.progress} later={wait.answerLater}>
          {wait.answer}
        </Waiting>
        <div class="stack">
          {bank !== null && (
            <a class="button plain" href={bank}>
              {wait.backToBank}
            </a>
          )}
          <Cancel action={`${path}/cancel`} texts={pay} />
        </div>
      </>
    ),
  });
}

interface Outcome {
  text: keyof Texts['outcome'];
  icon: IconName;
  tone: '' | 'good' | 'bad';
}

const OUTCOMES: Record<PaymentStatus, Outcome> = {
  created: { text: 'open', icon: 'clock', tone: '' },
  awaiting_customer: { text: 'open', icon: 'clock', tone: '' },
  authorized: { text: 'paid', icon: 'check', tone: 'good' },
  settled: { text: 'paid', icon: 'check', tone: 'good' },
  failed: { text: 'failed', icon: 'cross', tone: 'bad' },
  cancelled: { text: 'cancelled', icon: 'cross', tone: '' },
  expired: { text: 'expired', icon: 'clock', tone: '' },
};

export function outcomePage(props: PayPageProps, onward: string | null): string {
  const { payment, brand, language } = props;
  const { outcome, frame } = language.texts;
  const { text, icon, tone } = OUTCOMES[payment.status];
  return renderPage({
    title: outcome[text],
    ...shell(props),
    children: (
      <>
        <div class={`sign ${tone}`}>
          <Icon name={icon} size={28} />
        </div>
        <h1>{outcome[text]}</h1>
        <Summary {...props} />
        {onward !== null && (
          <a class="button" href={onward}>
            {fillText(frame.backTo, { merchant: brand.name })}
          </a>
        )}
      </>
    ),
  });
}

function Summary({ payment, brand, language }: PayPageProps) {
  const amount = formatMoneyIn(language, payment.amount, payment.currency);
  const { summary } = language.texts.pay;
  return <p class="muted">{fillText(summary, { amount, merchant: brand.name })}</p>;
}

interface WaitingProps {
  poll: string;
  label: string;
  later: string;
  children: string;
}

function Waiting({ poll, label, later, children }: WaitingProps) {
  return (
    <div class="stack" data-poll={poll} aria-live="polite">
      <progress aria-label={label} />
      <p class="muted">{children}</p>
      <p data-later hidden>
        {later}
      </p>
    </div>
  );
}

export function Cancel({ action, texts }: { action: string; texts: Texts['pay'] }) {
  return (
    <form method="post" action={action}>
      <button class="quiet" type="submit" data-busy={texts.cancelBusy}>
        {texts.cancel}
      </button>
    </form>
  );
}

export function PayBy({ payment, language }: PayPageProps) {
  return (
    <Detail name={language.texts.pay.payBy}>
      <time dateTime={payment.expires_at} data-time={language.regional}>
        {formatTimeIn(language, payment.expires_at)}
      </time>
    </Detail>
  );
}

export function shell({ payment, assets, language, brand }: PayPageProps) {
  const { frame, pay } = language.texts;
  return {
    lang: language.locale,
    stylesheet: assets.css,
    accent: brand.accent,
    script: assets.js,
    footer: frame.secureOnce,
    languages: <LanguageSwitch {...language} />,
    banner: payment.livemode ? undefined : pay.sandbox,
  };
}

function describeMethod(id: string, { method, bank }: Texts) {
  if (!isPaymentMethodId(id)) return { ...bank, icon: 'bank_selector' as const };
  const { display_name: name, page } = methodRules(id);
  const fill = (text: string) => fillText(text, { method: name });
  return {
    name,
    icon: page,
    continue: fill(method.continue),
    opening: fill(method.opening),
    openingBusy: fill(method.openingBusy),
  };
}

type Facts = Pick<
  PaymentDocument,
  'status' | 'browser_hash' | 'expires_at' | 'success_url' | 'error_url'
>;

/**
 * - `outcome`: this browser opened the payment, which is no longer payable
 * - `taken`: another browser opened it
 */
export type PageAccess = 'open' | 'outcome' | 'taken' | 'expired' | 'ended';

/**
 * @param browserHash SHA-256 of the browser's cookie
 * @see docs/api.md#send-the-customer-to-redirect_url
 */
export function getPageAccess(payment: Facts, browserHash: string | null, now: Date): PageAccess {
  const { status, browser_hash } = payment;
  if (browser_hash !== null && browser_hash !== browserHash) return 'taken';
  const payable = status === 'created' || status === 'awaiting_customer';
  if (status === 'expired' || (payable && Date.parse(payment.expires_at) <= now.getTime())) {
    return 'expired';
  }
  if (payable) return 'open';
  return browser_hash === null ? 'ended' : 'outcome';
}

/**
 * @returns null while nothing is decided
 * @see docs/api.md#send-the-customer-to-redirect_url
 */
export function onwardUrl(payment: Facts): string | null {
  const onward: Record<PaymentStatus, string | null> = {
    created: null,
    awaiting_customer: null,
    authorized: payment.success_url,
    settled: payment.success_url,
    failed: payment.error_url,
    cancelled: payment.error_url,
    expired: payment.error_url,
  };
  return onward[payment.status];
}

const URL_LENGTH_MAX = 2_048;

/**
 * @returns null unless a browser may open it: https, or http in the sandbox
 * @see docs/connectors.md#instructions
 */
export function bankUrl({
  session_url: url,
  livemode,
}: Pick<PaymentDocument, 'session_url' | 'livemode'>): string | null {
  if (url === null || url.length > URL_LENGTH_MAX || !URL.canParse(url)) return null;
  const { protocol } = new URL(url);
  return protocol === 'https:' || (protocol === 'http:' && !livemode) ? url : null;
}
