import type { TransferInstructions } from '../domain/payment/transfer-instructions';
import { formatDecimalIn, formatMoneyIn } from './language';
import { renderPage, Shop } from './layout';
import { Cancel, PayBy, type PayPageProps, shell } from './pay-views';
import type { Texts } from './texts/texts';

/** Long interval, since a transfer takes hours. */
const LOOK_AGAIN_MS = 15_000;
const RELOAD_S = 60;

export function transferPage(
  props: PayPageProps,
  instructions: TransferInstructions,
  path: string,
): string {
  const { payment, brand, language } = props;
  const { pay, transfer } = language.texts;
  const { iban, account_holder, bic, reference } = instructions;
  const { amount, currency } = payment;
  const field = { texts: language.texts };
  return renderPage({
    title: transfer.title,
    ...shell(props),
    reloadAfter: RELOAD_S,
    children: (
      <div class="live" data-poll={`${path}/transfer/status`} data-pause={LOOK_AGAIN_MS}>
        <Shop {...brand} />
        <div class="stack">
          <h1>{transfer.title}</h1>
          <p class="muted">{transfer.confirmed}</p>
        </div>
        <dl class="fields">
          <Field
            id="amount"
            name={pay.amount}
            value={formatDecimalIn(language, amount, currency)}
            shown={formatMoneyIn(language, amount, currency)}
            {...field}
          />
          <Field id="holder" name={transfer.holder} value={account_holder} {...field} />
          <Field id="iban" name="IBAN" value={iban} shown={group(iban)} {...field} />
          {bic !== null && <Field id="bic" name="BIC" value={bic} {...field} />}
          <Field
            id="reference"
            name={transfer.reference}
            value={reference}
            shown={group(reference)}
            {...field}
          />
        </dl>
        <p class="callout small">{transfer.exactly}</p>
        <dl>
          <PayBy {...props} />
        </dl>
        <p class="muted small">{transfer.sent}</p>
        <Cancel action={`${path}/cancel`} texts={pay} />
        <p class="said" role="status" data-said />
      </div>
    ),
  });
}

interface FieldProps {
  id: string;
  name: string;
  value: string;
  shown?: string;
  texts: Texts;
}

function Field({ id, name, value, shown = value, texts: { transfer, crypto } }: FieldProps) {
  return (
    <div>
      <dt class="small">{name}</dt>
      <dd>
        <span id={id} class="value all" data-value={value}>
          {shown}
        </span>
        <button
          class="plain slim"
          type="button"
          aria-label={`${transfer.copy}: ${name}`}
          data-copy={id}
          data-copied={crypto.copied}
          data-said-then={`${crypto.copied}: ${name}`}
          hidden
        >
          {transfer.copy}
        </button>
      </dd>
    </div>
  );
}

function group(text: string): string {
  return text.replace(/(.{4})(?=.)/g, '$1 ');
}
