import type Router from '@koa/router';
import type { RouterContext } from '@koa/router';
import type { MongoClient } from 'mongodb';
import { inTransaction } from '../../src/base/mongo';
import { SECRET } from '../../src/pages/browser';
import { allowForms, seeOther } from '../../src/pages/security';
import type { SessionInstruction } from '../contract/activities';
import type { TimeReader } from './clock';
import { declineReason, getPageKind } from './declines';
import { inputFault, sessionPage } from './method-pages';
import type { Outbox } from './outbox';
import { type Message, readForm, showMessage, showPage } from './pages';
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
      const session = await find(ctx, deps);
      if (session !== null) await handle(ctx, session);
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

async function find(ctx: RouterContext, deps: RouteDeps): Promise<OpenSession | null> {
  const { token = '' } = ctx.params;
  const session = SECRET.test(token) ? await deps.sessions.byToken(token) : null;
  if (session !== null && session.instruction !== null) {
    return { ...session, instruction: session.instruction };
  }
  showMessage(ctx, NO_SESSION, deps);
  return null;
}

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
  state: { fault?: string; confirm?: boolean },
): void {
  allowForms(ctx, { urls: [instruction.return_url], livemode: instruction.livemode });
  const page = sessionPage({ instruction, path: `/session/${token}`, ...state });
  showPage(ctx, state.fault === undefined ? 200 : 422, { ...page, stylesheet });
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
