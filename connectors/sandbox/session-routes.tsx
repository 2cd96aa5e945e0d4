import type Router from '@koa/router';
import type { RouterContext } from '@koa/router';
import type { MongoClient } from 'mongodb';
import type { ComponentChildren } from 'preact';
import { inTransaction } from '../../src/base/mongo';
import { formatMoney } from '../../src/domain/money/money';
import { isPaymentMethodId, methodRules } from '../../src/domain/payment/catalog';
import { SECRET } from '../../src/pages/browser';
import { Detail, Icon } from '../../src/pages/layout';
import { allowForms, seeOther } from '../../src/pages/security';
import type { SessionInstruction } from '../contract/activities';
import type { TimeReader } from './clock';
import { DECLINE_REASONS, declineReason, getPageKind, type PageKind } from './magic-amounts';
import type { Outbox } from './outbox';
import { Approve, Fault, Field, type Message, readForm, showMessage, showPage } from './pages';
import { planApproval, planDecline } from './plan';
import type { BankSession, SessionStatus, SessionStore } from './sessions';

export interface SessionDeps {
  mongo: MongoClient;
  sessions: SessionStore;
  outbox: Outbox;
  decided: () => void;
  autoplay: boolean;
  readTime: TimeReader;
}

type RouteDeps = SessionDeps & { stylesheet: string };
type OpenSession = BankSession & { instruction: SessionInstruction };

/** Token in the address authenticates the customer. */
export function addSessionRoutes(router: Router, deps: RouteDeps): void {
  const onSession =
    (handle: (ctx: RouterContext, session: OpenSession) => Promise<void>) =>
    async (ctx: RouterContext): Promise<void> => {
      const { token = '' } = ctx.params;
      const session = SECRET.test(token) ? await deps.sessions.byToken(token) : null;
      if (session === null || session.instruction === null) showMessage(ctx, NO_SESSION, deps);
      else await handle(ctx, { ...session, instruction: session.instruction });
    };

  const showSession = onSession(async (ctx, session) => {
    if (!(await isOpen(deps, session))) return showEnd(ctx, deps, session);
    show(ctx, deps, session, { confirm: ctx.query['step'] === 'confirm' });
  });

  /** Checks the number and does not store it. */
  const enterPhone = onSession(async (ctx, session) => {
    if (!(await isOpen(deps, session))) return showEnd(ctx, deps, session);
    const fault = inputFault('wallet', await readForm(ctx));
    if (fault !== null) return show(ctx, deps, session, { fault });
    seeOther(ctx, `/session/${session.token}?step=confirm`);
  });

  const decideSession = onSession(async (ctx, session) => {
    const { method, return_url } = session.instruction;
    const form = await readForm(ctx);
    const approve = form.get('decision') === 'approve';
    const kind = getPageKind(method);
    const fault = approve && kind !== 'wallet' ? inputFault(kind, form) : null;
    if (fault !== null && (await isOpen(deps, session))) return show(ctx, deps, session, { fault });
    const reason = approve ? null : declineReason(method, form.get('reason') ?? '');
    const now = (await decide(deps, session, reason)) ?? (await deps.sessions.get(session._id));
    // Pressed twice: the first press counts, and both lead back.
    const isDecided = now !== null && now.decided_at !== null;
    return isDecided ? seeOther(ctx, return_url) : showEnd(ctx, deps, session);
  });

  router.get('/session/:token', showSession);
  router.post('/session/:token/phone', enterPhone);
  router.post('/session/:token/decision', decideSession);
}

/** Writes decision and callbacks in one transaction; null if already decided, or too late. */
async function decide(
  { mongo, sessions, outbox, autoplay, decided, readTime }: RouteDeps,
  { _id, token, bank_reference, instruction }: OpenSession,
  reason: string | null,
): Promise<BankSession | null> {
  const status: SessionStatus = reason === null ? 'approved' : 'declined';
  const planned =
    reason === null ? planApproval(instruction.amount, autoplay) : planDecline(reason);
  const now = await readSessionTime({ readTime }, _id);
  const after = await inTransaction(mongo, async (transaction) => {
    const session = await sessions.decide(token, { status, reason }, now, transaction);
    if (session !== null) {
      const about = { resource: 'payment', resource_id: session._id, bank_reference } as const;
      await outbox.add(about, planned, transaction);
    }
    return session;
  });
  decided();
  return after;
}

const NO_SESSION = {
  status: 404,
  title: 'There is no such session',
  text: 'The link may be incomplete. Go back to the shop and start the payment again.',
};

async function isOpen(
  deps: Pick<SessionDeps, 'readTime'>,
  { _id, status, instruction }: OpenSession,
): Promise<boolean> {
  const now = await readSessionTime(deps, _id);
  return status === 'open' && Date.parse(instruction.expires_at) > now.getTime();
}

/** The payment expires by the account's time. */
function readSessionTime(
  { readTime }: Pick<SessionDeps, 'readTime'>,
  resource_id: string,
): Promise<Date> {
  return readTime({ resource: 'payment', resource_id });
}

function show(
  ctx: RouterContext,
  { stylesheet }: RouteDeps,
  { instruction, token }: OpenSession,
  state: Pick<SessionView, 'fault' | 'confirm'>,
): void {
  const { method, amount, currency, return_url, livemode } = instruction;
  allowForms(ctx, { urls: [return_url], livemode });
  const path = `/session/${token}`;
  const kind = getPageKind(method);
  const name = isPaymentMethodId(method) ? methodRules(method).display_name : method;
  const isFault = state.fault !== undefined;
  const children = (
    <>
      <p class="shop">
        <span class="mark">
          <Icon name={kind} />
        </span>
        <span>{name}</span>
      </p>
      <p class="amount">{formatMoney(amount, currency)}</p>
      {BODIES[kind]({ instruction, path, ...state })}
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
        <a class="button quiet" href={return_url}>
          Walk away without deciding
        </a>
      </section>
    </>
  );
  const title = `${isFault ? 'Error: ' : ''}${name} · Sandbox bank`;
  showPage(ctx, isFault ? 422 : 200, { title, stylesheet, children });
}

const APPROVED = {
  status: 200,
  title: 'You approved this payment',
  text: 'The shop is informed.',
};

const ENDS: Record<SessionStatus, Message> = {
  open: {
    status: 410,
    title: 'This session has expired',
    text: 'The time to pay is over. Nothing was charged.',
  },
  approved: APPROVED,
  settled: APPROVED,
  declined: { status: 200, title: 'This payment was declined', text: 'Nothing was charged.' },
  closed: {
    status: 410,
    title: 'This payment was called off',
    text: 'It can no longer be paid. Nothing was charged.',
  },
  voided: {
    status: 410,
    title: 'This payment was released',
    text: 'The approval came too late and was released. Nothing was charged.',
  },
  reversed: {
    status: 410,
    title: 'This payment was sent back',
    text: 'The money came too late for the shop and was returned.',
  },
};

async function showEnd(ctx: RouterContext, deps: RouteDeps, stale: OpenSession): Promise<void> {
  const { status, reason } = (await deps.sessions.get(stale._id)) ?? stale;
  const message = ENDS[status];
  const text = reason === null ? message.text : `${reason} ${message.text}`;
  const back = stale.instruction.return_url;
  showMessage(ctx, { ...message, text }, { stylesheet: deps.stylesheet, back });
}

interface SessionView {
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

function inputFault(kind: PageKind, form: URLSearchParams): string | null {
  const rule = RULES[kind];
  return rule === null || rule.valid.test(form.get(rule.field) ?? '') ? null : rule.fault;
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

function cashReference(paymentId: string): string {
  const digits = String(Number.parseInt(paymentId.replaceAll('-', '').slice(-12), 16) || 0);
  const nine = digits.slice(-9).padStart(9, '0');
  return [nine.slice(0, 3), nine.slice(3, 6), nine.slice(6)].join(' ');
}
