import { assetRules, formatDecimalUnits, formatUnits } from '../domain/crypto/assets';
import { formatMoney } from '../domain/money';
import {
  buildUri,
  getStage,
  type ShownCryptoPayment,
  type ShownDeposit,
  type Stage,
  type StageName,
} from './crypto-stage';
import { Icon } from './icons';
import { Detail, Monogram, renderPage, Sign, type SignProps } from './layout';
import type { PayAssets } from './pay-views';
import { QrCode } from './qr';

interface CryptoPageProps {
  payment: ShownCryptoPayment & { play_url: string | null };
  merchant: string;
  assets: PayAssets;
  now: Date;
  /** URL that returns the state of the page. */
  poll: string;
  state: string;
}

const WORDS: Record<Exclude<StageName, 'pay'>, SignProps> = {
  top_up: {
    icon: 'clock',
    title: 'Part of the amount is here',
    text: 'Send the rest to the same address before the time is over. You need not start again.',
  },
  confirming: {
    icon: 'clock',
    title: 'Your payment is being confirmed',
    text: 'You can close this page: we notify the shop.',
  },
  received: {
    icon: 'check',
    tone: 'good',
    title: 'Payment received',
    text: 'The shop has been notified. You can close this page.',
  },
  short: {
    icon: 'clock',
    tone: 'bad',
    title: 'Too little came in time',
    text: 'Please send nothing more. Your money is not lost: ask the shop, which can accept or return it.',
  },
  held: {
    icon: 'clock',
    title: 'Your payment is being checked',
    text: 'Please do not pay again. A person looks at it, and the shop hears the outcome.',
  },
  expired: {
    icon: 'clock',
    title: 'The time to pay is over',
    text:
      'Please send nothing to this address any more. If you have just paid, do not pay again: ' +
      'nothing is lost, and the shop can help you. Otherwise start again in the shop.',
  },
};

export function cryptoPage(props: CryptoPageProps): string {
  const { payment, merchant, assets, now, poll, state } = props;
  const stage = getStage(payment, now);
  const canPay = stage.name === 'pay' || stage.name === 'top_up';
  return renderPage({
    title: getTitle(payment, stage, merchant),
    stylesheet: assets.css,
    script: assets.js,
    footer: 'Secure payment page.',
    banner: payment.livemode ? undefined : 'Sandbox: this is a test, send no real funds.',
    reloadAfter: 10,
    children: (
      <div class="live" data-poll={poll} data-state={state}>
        <Monogram name={merchant} />
        {stage.name === 'pay' ? null : <Sign {...WORDS[stage.name]} />}
        {canPay && <PayPrompt payment={payment} stage={stage} />}
        <Notes payment={payment} stage={stage} />
        <Deposits payment={payment} />
        {canPay && <Play url={payment.livemode ? null : payment.play_url} />}
      </div>
    ),
  });
}

function getTitle(payment: ShownCryptoPayment, stage: Stage, merchant: string): string {
  if (stage.name !== 'pay') return WORDS[stage.name].title;
  return `Pay ${formatUnits(stage.missing, payment)} to ${merchant}`;
}

/** Characters that fit on one line in the large type. */
const LINE_LENGTH = 11;

function PayPrompt({ payment, stage }: { payment: ShownCryptoPayment; stage: Stage }) {
  const { asset, network, address } = payment;
  const uri = buildUri(payment, stage.missing);
  const decimals = assetRules(asset, network)?.decimals ?? 0;
  const amount = formatDecimalUnits(stage.missing, decimals);
  const Heading = stage.name === 'pay' ? 'h1' : 'h2';
  return (
    <>
      <Heading class="lines">
        <span class="muted small">{stage.name === 'pay' ? 'Send exactly' : 'Still to send'}</span>
        <span class={`amount ${amount.length > LINE_LENGTH ? 'units long' : 'units'}`}>
          <span id="amount" class="all">
            {amount}
          </span>{' '}
          <span class="unit">{asset}</span>
        </span>
      </Heading>
      <div class="row">
        <Copy target="amount" />
        <Clock secondsLeft={stage.secondsLeft} />
      </div>
      <div class="code">
        <QrCode text={uri} label={`QR code for a wallet: ${asset} on ${network}`} />
      </div>
      <div class="address">
        <div class="lines">
          <span class="muted small">{networkName(network)} address</span>
          <span id="address" class="value all">
            {address}
          </span>
        </div>
        <Copy target="address" />
        <noscript>
          <p class="muted small">
            Press the amount or the address once to select all of it, then copy it.
          </p>
        </noscript>
        <p class="said" role="status" data-said />
      </div>
      <a class="button" href={uri}>
        Open in wallet
      </a>
      <p class="callout small">
        Send only {asset} on the {networkName(network)} network. Anything else may be lost. The fee
        of the network comes on top.
      </p>
    </>
  );
}

/** Button that the script shows; without it, one press selects the whole text. */
function Copy({ target }: { target: 'amount' | 'address' }) {
  const confirmation = target === 'amount' ? 'Amount copied' : 'Address copied';
  return (
    <button
      class="plain slim"
      type="button"
      data-copy={target}
      data-said-then={confirmation}
      hidden
    >
      Copy {target}
    </button>
  );
}

function Clock({ secondsLeft }: { secondsLeft: number }) {
  const minutes = Math.max(1, Math.ceil(secondsLeft / 60));
  return (
    <p class="clock" role="timer" aria-label="Time left">
      <Icon name="clock" size={18} />
      <span data-left={Math.floor(secondsLeft)}>{`${minutes} min`}</span>
    </p>
  );
}

function Notes({ payment, stage }: { payment: ShownCryptoPayment; stage: Stage }) {
  const { amount, currency, amount_due, reference } = payment;
  return (
    <>
      <dl>
        <Detail name="Price">{formatMoney(amount, currency)}</Detail>
        {stage.seen > 0n && <Detail name="Amount due">{formatUnits(amount_due, payment)}</Detail>}
        {stage.seen > 0n && <Detail name="Came so far">{formatUnits(stage.seen, payment)}</Detail>}
        {reference !== null && <Detail name="Reference">{reference}</Detail>}
      </dl>
      {stage.surplus > 0n && (
        <p class="callout small">
          You sent {formatUnits(stage.surplus, payment)} more than was due. The shop sees it: ask
          there to have it back.
        </p>
      )}
    </>
  );
}

function Play({ url }: { url: string | null }) {
  return url === null ? null : (
    <a class="button plain" href={url} target="_blank" rel="noopener">
      Play the payer
    </a>
  );
}

function networkName(network: string): string {
  return network.charAt(0).toUpperCase() + network.slice(1);
}

function Deposits({ payment }: { payment: ShownCryptoPayment }) {
  if (payment.deposits.length === 0) return null;
  return (
    <div class="stack">
      <h2>What came</h2>
      <ul class="deposits">
        {payment.deposits.map((deposit) => (
          <Deposit key={deposit.transaction_id} deposit={deposit} asset={payment} />
        ))}
      </ul>
    </div>
  );
}

function Deposit({ deposit, asset }: { deposit: ShownDeposit; asset: ShownCryptoPayment }) {
  const { transaction_id, amount, confirmations, required_confirmations: required } = deposit;
  const count = Math.min(confirmations, required);
  const labels = {
    pending: `${count} of ${required} confirmations`,
    confirmed: 'Confirmed',
    held: deposit.late ? 'Came too late: ask the shop' : 'Being checked',
    rejected: 'Not accepted: ask the shop',
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
        <meter min={0} max={required} value={count} aria-label="Confirmations" />
      )}
      <span class="value transaction muted">{transaction_id}</span>
    </li>
  );
}
