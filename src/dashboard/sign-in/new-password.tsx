import type Router from '@koa/router';
import type { RouterContext } from '@koa/router';
import { hashPassword } from '../../encryption/password';
import { SECRET } from '../../pages/browser';
import { seeOther } from '../../pages/security';
import {
  acceptInvitation,
  findInvitation,
  mustReplacePassword,
} from '../../service/merchants/team/members';
import {
  changePassword,
  readSession,
  setFlash,
  type Visit,
} from '../../service/merchants/team/sessions';
import { checkPassword } from '../../service/merchants/team/sign-in';
import { auditAsUser } from '../../service/operators/audit/log';
import {
  csrfToken,
  type Dashboard,
  describeUser,
  getOrigin,
  HOME_PATH,
  NEW_PASSWORD_PATH,
  noteVisitor,
} from '../frame/context';
import { NewPasswordField } from '../frame/fields';
import { findPasswordFault, readOwnForm } from '../frame/form';
import { explainLimit, sendCard, sendNotice } from '../frame/layout';
import { getNextPath, openSession } from './sign-in';

const INVITATION_PATH = '/dashboard/invitation/:token';

/** Pages on which a user without a password of their own chooses one. */
export function addNewPassword(router: Router, dashboard: Dashboard): void {
  router.get(NEW_PASSWORD_PATH, async (ctx) => {
    const step = await loadStep(ctx, dashboard);
    if (step === null) return seeOther(ctx, HOME_PATH);
    show(ctx, dashboard, { ...step, next: getNextPath(new URLSearchParams(ctx.querystring)) });
  });
  router.post(NEW_PASSWORD_PATH, async (ctx) => {
    const step = await loadStep(ctx, dashboard);
    if (step === null) return seeOther(ctx, HOME_PATH);
    const { secret, session, user } = step;
    const form = await readOwnForm(ctx, dashboard.publicUrl, secret);
    if (typeof form === 'string') return sendNotice(ctx, dashboard, form);
    const next = getNextPath(form);
    const password = form.get('new_password') ?? '';
    const refuse = (fault: string) => show(ctx, dashboard, { ...step, next, fault });
    const fault = findPasswordFault(password);
    if (fault !== undefined) return refuse(fault);
    // Bounds also how often this page hashes a password.
    const check = await checkPassword(dashboard, user, password);
    if (check.outcome === 'too_many') return refuse(explainLimit(check.minutes));
    if (check.outcome === 'right') return refuse('Choose another one than the present password.');
    const change = { password_hash: await hashPassword(password), keep: session._id };
    const audit = auditAsUser(dashboard, user, getOrigin(ctx, dashboard));
    if (!(await changePassword({ ...dashboard, audit }, user, change))) {
      return seeOther(ctx, '/dashboard/sign-in');
    }
    await setFlash(dashboard, session, { tone: 'good', text: 'Your new password is saved.' });
    seeOther(ctx, next ?? HOME_PATH);
  });
  // The token in the link of an invitation authorizes.
  router.get(INVITATION_PATH, async (ctx) => {
    const invitation = await find(ctx, dashboard);
    if (invitation === null) return sendNotice(ctx, dashboard, 'link_over');
    showInvitation(ctx, dashboard, invitation);
  });
  router.post(INVITATION_PATH, async (ctx) => {
    const form = await readOwnForm(ctx, dashboard.publicUrl, null);
    if (typeof form === 'string') return sendNotice(ctx, dashboard, form);
    const { token = '' } = ctx.params;
    const invitation = await find(ctx, dashboard);
    if (invitation === null) return sendNotice(ctx, dashboard, 'link_over');
    const password = form.get('password') ?? '';
    const fault = findPasswordFault(password);
    if (fault !== undefined) return showInvitation(ctx, dashboard, invitation, fault);
    const password_hash = await hashPassword(password);
    const user = await acceptInvitation(dashboard, token, password_hash, getOrigin(ctx, dashboard));
    if (user === null) return sendNotice(ctx, dashboard, 'link_over');
    if (user === 'is_member') {
      const text = 'This address is a member of the team already: sign in.';
      return showInvitation(ctx, dashboard, invitation, text);
    }
    const path = HOME_PATH;
    const proof = { by: 'invitation' } as const;
    const isSignedIn = await openSession(ctx, dashboard, user, { stage: 'whole', path, proof });
    if (!isSignedIn) seeOther(ctx, '/dashboard/sign-in');
  });
}

interface Step extends Pick<Visit, 'session' | 'user'> {
  secret: string;
}

async function loadStep(ctx: RouterContext, dashboard: Dashboard): Promise<Step | null> {
  const secret = dashboard.cookie.read(ctx);
  const visit = secret === null ? null : await readSession(dashboard, secret);
  if (secret === null || visit?.session.stage !== 'whole') return null;
  noteVisitor(ctx, describeUser(visit.user, visit.session._id));
  return mustReplacePassword(visit.user) ? { ...visit, secret } : null;
}

interface StepPage extends Step {
  next: string | undefined;
  fault?: string;
}

function show(
  ctx: RouterContext,
  dashboard: Dashboard,
  { secret, user, next, fault }: StepPage,
): void {
  const children = (
    <>
      <p>Somebody else set your password. Choose one that only you know.</p>
      <form method="post" action={NEW_PASSWORD_PATH} class="form">
        <input type="hidden" name="csrf" value={csrfToken(secret)} />
        {next !== undefined && <input type="hidden" name="next" value={next} />}
        <input type="hidden" name="username" autocomplete="username" value={user.email} />
        <NewPasswordField label="New password" name="new_password" autofocus />
        <button type="submit">Save password</button>
      </form>
    </>
  );
  const status = fault === undefined ? 200 : 422;
  sendCard(ctx, dashboard, { title: 'Choose a new password', status, fault, children });
}

type Invitation = NonNullable<Awaited<ReturnType<typeof findInvitation>>>;

async function find(ctx: RouterContext, dashboard: Dashboard): Promise<Invitation | null> {
  const { token = '' } = ctx.params;
  return SECRET.test(token) ? await findInvitation(dashboard, token) : null;
}

function showInvitation(
  ctx: RouterContext,
  dashboard: Dashboard,
  { email, merchant = 'A merchant' }: Invitation,
  fault?: string,
): void {
  const children = (
    <>
      <p>{`${merchant} invites ${email} to its payments dashboard.`}</p>
      <form method="post" action={ctx.path} class="form">
        <input type="hidden" name="username" autocomplete="username" value={email} />
        <NewPasswordField label="Password" name="password" autofocus />
        <button type="submit">Join</button>
      </form>
    </>
  );
  const status = fault === undefined ? 200 : 422;
  sendCard(ctx, dashboard, { title: 'Join the team', status, fault, children });
}
