import type { ComponentChildren } from 'preact';
import { formatMoney } from '../../src/domain/money';
import { isPaymentMethodId, methodRules } from '../../src/domain/payment/catalog';
import { Detail, Icon } from '../../src/pages/layout';
import type { SessionInstruction } from '../contract/activities';
import { DECLINE_REASONS, getPageKind, type PageKind } from './declines';
import { Approve, Fault, Field } from './fields';

export interface SessionView {
  instruction: SessionInstruction;
  path: string;
  fault?: string;
  confirm?: boolean;
}

const TEST_CODE = '123456';
const TEST_PHONE = '+351 912 345 678';
const TEST_PIN = '1234 5678 9012 3456';
const TEST_BANKS = ['Amber Bank', 'Birch Savings', 'Cobalt Direct', 'Dune & Partners'];
const TEST_ENTITY = '99999';

const RULES: Record<PageKind, { field: string; valid: RegExp; fault: string } | null> = {
  bank_selector: { field: 'bank', valid: /^.{1,40}$/, fault: 'Choose a bank.' },
  wallet: {
    field: 'phone',
    valid: /^\+?[0-9][0-9 ]{5,18}$/,
    fault: `Enter a phone number, such as ${TEST_PHONE}.`,
  },
  card: { field: 'code', valid: /^ *123 ?456 *$/, fault: 'That is not the code.' },
  cash_reference: null,
  voucher: {
    field: 'pin',
    valid: /^ *([0-9] ?){16} *$/,
    fault: 'The PIN on a voucher has 16 digits.',
  },
};

export function inputFault(kind: PageKind, form: URLSearchParams): string | null {
  const rule = RULES[kind];
  return rule === null || rule.valid.test(form.get(rule.field) ?? '') ? null : rule.fault;
}

export function sessionPage(view: SessionView): { title: string; children: ComponentChildren } {
  const { instruction, path, fault } = view;
  const { method, amount, currency, return_url } = instruction;
  const kind = getPageKind(method);
  const name = isPaymentMethodId(method) ? methodRules(method).display_name : method;
  return {
    title: `${fault === undefined ? '' : 'Error: '}${name} · Sandbox bank`,
    children: (
      <>
        <p class="shop">
          <span class="mark">
            <Icon name={kind} />
          </span>
          <span>{name}</span>
        </p>
        <p class="amount">{formatMoney(amount, currency)}</p>
        {BODIES[kind](view)}
        <Otherwise kind={kind} path={path} back={return_url} />
      </>
    ),
  };
}

const BODIES: Record<PageKind, (view: SessionView) => ComponentChildren> = {
  bank_selector: ({ path, fault }) => (
    <Approve path={path} label="Approve payment">
      <fieldset aria-describedby={fault === undefined ? undefined : 'fault'}>
        <legend>
          <h1>Choose your bank</h1>
        </legend>
        <Fault text={fault} />
        {TEST_BANKS.map((bank, index) => (
          <label class="choice" key={bank}>
            <input type="radio" name="bank" value={bank} required defaultChecked={index === 0} />
            <span>{bank}</span>
          </label>
        ))}
      </fieldset>
    </Approve>
  ),
  wallet: ({ path, fault, confirm }) =>
    confirm === true ? (
      <Approve path={path} label="Approve on the phone">
        <h1>Check your phone</h1>
        <p class="muted">Your wallet asks you to approve this payment. Play the phone here.</p>
      </Approve>
    ) : (
      <form class="stack" method="post" action={`${path}/phone`}>
        <h1>Pay with your phone</h1>
        <Field
          name="phone"
          label="Phone number"
          hint="Any number will do. It is not kept."
          fault={fault}
          value={TEST_PHONE}
          inputMode="tel"
          autoComplete="tel"
        />
        <button type="submit">Send to my phone</button>
      </form>
    ),
  card: ({ path, fault }) => (
    <Approve path={path} label="Confirm payment">
      <h1>Confirm it’s you</h1>
      <p class="muted">Your bank sent a one-time code to your phone.</p>
      <Field
        name="code"
        label="One-time code"
        hint={`In the sandbox it is ${TEST_CODE}.`}
        fault={fault}
        inputMode="numeric"
        autoComplete="one-time-code"
      />
    </Approve>
  ),
  cash_reference: ({ path, instruction }) => (
    <Approve path={path} label="Pretend to pay at the cash machine">
      <h1>Pay at a cash machine</h1>
      <p class="muted">Choose “Payments” at the machine or in online banking, and enter:</p>
      <dl class="values">
        <Detail name="Entity">{TEST_ENTITY}</Detail>
        <Detail name="Reference">{cashReference(instruction.payment_id)}</Detail>
        <Detail name="Amount">{formatMoney(instruction.amount, instruction.currency)}</Detail>
      </dl>
    </Approve>
  ),
  voucher: ({ path, fault }) => (
    <Approve path={path} label="Pay with this voucher">
      <h1>Enter your voucher</h1>
      <Field
        name="pin"
        label="16-digit PIN"
        hint="This test PIN works; so do any 16 digits."
        fault={fault}
        value={TEST_PIN}
        inputMode="numeric"
        autoComplete="off"
      />
    </Approve>
  ),
};

function Otherwise({ kind, path, back }: { kind: PageKind; path: string; back: string }) {
  return (
    <section class="otherwise stack" aria-labelledby="otherwise">
      <h2 id="otherwise">Or let it go wrong</h2>
      <form class="stack" method="post" action={`${path}/decision`}>
        <div class="field">
          <label for="reason">The bank declines because</label>
          <select id="reason" name="reason">
            {Object.entries(DECLINE_REASONS[kind]).map(([key, text]) => (
              <option key={key} value={key}>
                {text}
              </option>
            ))}
          </select>
        </div>
        <button class="plain" type="submit" name="decision" value="decline">
          Decline payment
        </button>
      </form>
      <a class="button quiet" href={back}>
        Walk away without deciding
      </a>
    </section>
  );
}

function cashReference(paymentId: string): string {
  const digits = String(Number.parseInt(paymentId.replaceAll('-', '').slice(-12), 16) || 0);
  const nine = digits.slice(-9).padStart(9, '0');
  return [nine.slice(0, 3), nine.slice(3, 6), nine.slice(6)].join(' ');
}
