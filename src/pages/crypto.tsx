import { createHash } from 'node:crypto';
import type Router from '@koa/router';
import type { RouterContext } from '@koa/router';
import { assetRules, formatDecimalUnits, formatUnits, isNative } from '../domain/crypto/assets';
import type { ShownBrand } from '../service/money/payments';
import type { PayPages } from './answers';
import { addAsset } from './assets';
import { hashSecret, SECRET } from './browser';
import {
  buildUri,
  type CryptoPagePayment,
  getStage,
  type ShownCryptoPayment,
  type ShownDeposit,
  type Stage,
} from './crypto-stage';
import { formatMinutesIn, formatMoneyIn, type PageLanguage } from './language';
import {
  Detail,
  Icon,
  LanguageSwitch,
  QrCode,
  renderPage,
  Shop,
  Sign,
  type SignProps,
} from './layout';
import type { PayAssets } from './pay-views';
import { CRYPTO_JS } from './script';
import { CRYPTO_CSS } from './styles';
import { fillText, type Texts } from './texts/texts';

/**
 * Binds the page to no browser, since the wallet may be on another device.
 * @see docs/api.md#the-payers-page
 */
export function addCryptoRoutes(router: Router, pages: PayPages): void {
  const css = addAsset(router, '/pay/assets/crypto.css', 'text/css', CRYPTO_CSS);
  const js = addAsset(router, '/pay/assets/crypto.js', 'text/javascript', CRYPTO_JS);

  router.get('/pay/crypto/:token', async (ctx) => {
    const payment = await findPayment(ctx, pages);
    if (payment === null) return pages.notice(ctx, 'unknown');
    const now = await pages.getNow(payment);
    ctx.type = 'text/html; charset=utf-8';
    ctx.body = cryptoPage({
      payment,
      brand: await pages.getBrand(payment),
      assets: { css, js },
      language: pages.chooseLanguage(ctx),
      now,
      poll: `/pay/crypto/${ctx.params['token']}/status`,
      state: hashState(payment, now),
    });
  });

  router.get('/pay/crypto/:token/status', async (ctx) => {
    const payment = await findPayment(ctx, pages);
    if (payment === null) {
      ctx.status = 404;
      ctx.body = { status: null, state: null };
      return;
    }
    const now = await pages.getNow(payment);
    const seconds_left = Math.floor(getStage(payment, now).secondsLeft);
    ctx.body = { status: payment.status, state: hashState(payment, now), seconds_left };
  });
}

async function findPayment({ params }: RouterContext, { cryptoPayments }: PayPages) {
  const { token = '' } = params;
  return SECRET.test(token) ? await cryptoPayments.byToken(hashSecret(token)) : null;
}

function hashState(payment: CryptoPagePayment, now: Date): string {
  const { status, amount_received, deposits } = payment;
  const { name } = getStage(payment, now);
  const text = JSON.stringify([name, status, amount_received, deposits]);
  return createHash('sha256').update(text).digest('base64url').slice(0, 16);
}

interface CryptoPageProps {
  payment: ShownCryptoPayment & { play_url: string | null };
  brand: ShownBrand;
  assets: PayAssets;
  language: PageLanguage;
  now: Date;
  poll: string;
  state: string;
}

const SIGNS: Record<keyof Texts['stage'], Pick<SignProps, 'icon' | 'tone'>> = {
  top_up: { icon: 'clock' },
  confirming: { icon: 'clock' },
  received: { icon: 'check', tone: 'good' },
  short: { icon: 'clock', tone: 'bad' },
  held: { icon: 'clock' },
  expired: { icon: 'clock' },
};

export function cryptoPage(props: CryptoPageProps): string {
  const { payment, brand, assets, language, now, poll, state } = props;
  const { frame, crypto } = language.texts;
  const { amount, currency, amount_due, reference } = payment;
  const stage = getStage(payment, now);
  const canPay = stage.name === 'pay' || stage.name === 'top_up';
  const inAsset = (units: string | bigint) => formatUnits(units, payment);
  const price = { amount: inAsset(stage.missing), merchant: brand.name };
  const title =
    stage.name === 'pay'
      ? fillText(language.texts.pay.title, price)
      : language.texts.stage[stage.name].title;
  return renderPage({
    lang: language.locale,
    title,
    stylesheet: assets.css,
    accent: brand.accent,
    script: assets.js,
    footer: frame.secure,
    languages: <LanguageSwitch {...language} />,
    banner: payment.livemode ? undefined : crypto.sandbox,
    reloadAfter: 10,
    children: (
      <div class="live" data-poll={poll} data-state={state}>
        <Shop {...brand} />
        {stage.name === 'pay' ? null : (
          <Sign {...SIGNS[stage.name]} {...language.texts.stage[stage.name]} />
        )}
        {canPay && <PayPrompt {...{ payment, stage, language }} />}
        <dl>
          <Detail name={crypto.price}>{formatMoneyIn(language, amount, currency)}</Detail>
          {stage.seen > 0n && <Detail name={crypto.amountDue}>{inAsset(amount_due)}</Detail>}
          {stage.seen > 0n && <Detail name={crypto.cameSoFar}>{inAsset(stage.seen)}</Detail>}
          {reference !== null && <Detail name={frame.reference}>{reference}</Detail>}
        </dl>
        {stage.surplus > 0n && (
          <p class="callout small">
            {fillText(crypto.surplus, { amount: inAsset(stage.surplus) })}
          </p>
        )}
        {payment.deposits.length > 0 && (
          <div class="stack">
            <h2>{crypto.deposits}</h2>
            <ul class="deposits">
              {payment.deposits.map((each) => (
                <Deposit key={each.transaction_id} deposit={each} asset={payment} texts={crypto} />
              ))}
            </ul>
          </div>
        )}
        {canPay && !payment.livemode && payment.play_url !== null && (
          <a class="button plain" href={payment.play_url} target="_blank" rel="noopener">
            {crypto.playPayer}
          </a>
        )}
      </div>
    ),
  });
}

interface PayPromptProps {
  payment: ShownCryptoPayment;
  stage: Stage;
  language: PageLanguage;
}

const LINE_LENGTH = 11;

/** Amounts have the form that wallets accept, in every language. */
function PayPrompt({ payment, stage, language }: PayPromptProps) {
  const { asset, network, address } = payment;
  const { crypto } = language.texts;
  const uri = buildUri(payment, stage.missing);
  const rules = assetRules(asset, network);
  const decimals = rules?.decimals ?? 0;
  const amount = formatDecimalUnits(stage.missing, decimals);
  const Heading = stage.name === 'pay' ? 'h1' : 'h2';
  const chain = { network: network.charAt(0).toUpperCase() + network.slice(1) };
  const label = fillText(crypto.qrCode, { asset, ...chain });
  // Some wallets take the token's contract of such a URI for the recipient.
  const isToken = rules !== undefined && !isNative(rules);
  const openWallet = (
    <a class="button" href={uri}>
      {crypto.openWallet}
    </a>
  );
  return (
    <>
      <Heading class="lines">
        <span class="muted small">
          {stage.name === 'pay' ? crypto.sendExactly : crypto.stillToSend}
        </span>
        <span class={`amount ${amount.length > LINE_LENGTH ? 'units long' : 'units'}`}>
          <span id="amount" class="all">
            {amount}
          </span>{' '}
          <span class="unit">{asset}</span>
        </span>
      </Heading>
      <div class="row">
        <Copy target="amount" texts={crypto} />
        <p class="clock" role="timer" aria-label={crypto.timeLeft}>
          <Icon name="clock" size={18} />
          <span data-left={Math.floor(stage.secondsLeft)}>
            {formatMinutesIn(language, Math.max(1, Math.ceil(stage.secondsLeft / 60)))}
          </span>
        </p>
      </div>
      <div class="code">
        <QrCode text={isToken ? address : uri} label={label} />
      </div>
      {isToken && <p class="small">{fillText(crypto.addressCode, { asset, ...chain })}</p>}
      <div class="address">
        <div class="lines">
          <span class="muted small">{fillText(crypto.networkAddress, chain)}</span>
          <span id="address" class="value all">
            {address}
          </span>
        </div>
        <Copy target="address" texts={crypto} />
        <noscript>
          <p class="muted small">{crypto.selectToCopy}</p>
        </noscript>
        <p class="said" role="status" data-said />
      </div>
      {isToken ? (
        <details>
          <summary class="small">{crypto.amountCode}</summary>
          <div class="stack">
            <div class="code">
              <QrCode text={uri} label={`${label}, ${amount} ${asset}`} />
            </div>
            {openWallet}
          </div>
        </details>
      ) : (
        openWallet
      )}
      <p class="callout small">{fillText(crypto.onlyThisAsset, { asset, ...chain })}</p>
    </>
  );
}

type CryptoTexts = Texts['crypto'];

/** Script shows the button; without it, one press selects the whole text. */
function Copy({ target, texts }: { target: 'amount' | 'address'; texts: CryptoTexts }) {
  const isAmount = target === 'amount';
  return (
    <button
      class="plain slim"
      type="button"
      data-copy={target}
      data-copied={texts.copied}
      data-said-then={isAmount ? texts.amountCopied : texts.addressCopied}
      hidden
    >
      {isAmount ? texts.copyAmount : texts.copyAddress}
    </button>
  );
}

interface DepositProps {
  deposit: ShownDeposit;
  asset: ShownCryptoPayment;
  texts: CryptoTexts;
}

function Deposit({ deposit, asset, texts }: DepositProps) {
  const { transaction_id, amount, confirmations, required_confirmations: required } = deposit;
  const count = Math.min(confirmations, required);
  const labels = {
    pending: fillText(texts.confirmationsOf, { count, required }),
    confirmed: texts.confirmed,
    held: deposit.late ? texts.heldLate : texts.held,
    rejected: texts.rejected,
  };
  return (
    <li class="lines">
      <div class="row">
        <strong>
          {formatUnits(amount, { network: asset.network, asset: deposit.asset ?? asset.asset })}
        </strong>
        <span class={deposit.status === 'confirmed' ? 'small done' : 'small muted'}>
          {labels[deposit.status]}
        </span>
      </div>
      {deposit.status === 'pending' && (
        <meter min={0} max={required} value={count} aria-label={texts.confirmations} />
      )}
      <span class="value transaction muted">{transaction_id}</span>
    </li>
  );
}
