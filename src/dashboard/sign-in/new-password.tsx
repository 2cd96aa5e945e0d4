import type Router from '@koa/router';
import type { RouterContext } from '@koa/router';
import { hashPassword } from '../../encryption/password';
import { seeOther } from '../../pages/security';
import { mustReplacePassword } from '../../service/merchants/team/members';
import {
  changePassword,
  readSession,
  setFlash,
  type Visit,
} from '../../service/merchants/team/sessions';
import { checkPassword } from '../../service/merchants/team/sign-in';
import { auditAsUser } from '../../service/operators/audit/log';
import { csrfToken, type Dashboard, HOME_PATH, NEW_PASSWORD_PATH } from '../frame/context';
import { NewPasswordField } from '../frame/fields';
import { readOwnForm } from '../frame/form';
import { explainLimit, sendCard, sendNotice } from '../frame/notices';
import { findPasswordFault } from '../frame/password-fault';
import { describeUser, getOrigin, noteVisitor } from '../frame/visitor';
import { getNextPath } from './open-session';

/** Step of sign-in for a user whose password somebody else set. */
export function addNewPassword(router: Router, dashboard: Dashboard): void {
  router.get(NEW_PASSWORD_PATH, async (ctx) => {
    const step = await loadStep(ctx, dashboard);
    if (step === null) return seeOther(ctx, HOME_PATH);
    show(ctx, dashboard, { ...step, next: getNextPath(new URLSearchParams(ctx.querystring)) });
  });
  router.post(NEW_PASSWORD_PATH, (ctx) => save(ctx, dashboard));
}

interface Step extends Pick<Visit, 'session' | 'user'> {
  secret: string;
}

async function save(ctx: RouterContext, dashboard: Dashboard): Promise<void> {
  const step = await loadStep(ctx, dashboard);
  if (step === null) return seeOther(ctx, HOME_PATH);
  const { secret, session, user } = step;
  const form = await readOwnForm(ctx, dashboard.publicUrl, secret);
  if (typeof form === 'string') return sendNotice(ctx, dashboard, form);
  const next = getNextPath(form);
  const password = form.get('new_password') ?? '';
  const fault = findPasswordFault(password) ?? (await findReuse(dashboard, user, password));
  if (fault !== undefined) return show(ctx, dashboard, { ...step, next, fault });
  const change = { password_hash: await hashPassword(password), keep: session._id };
  const audit = auditAsUser(dashboard, user, getOrigin(ctx, dashboard));
  if (!(await changePassword({ ...dashboard, audit }, user, change))) {
    return seeOther(ctx, '/dashboard/sign-in');
  }
  await setFlash(dashboard, session, { tone: 'good', text: 'Your new password is saved.' });
  seeOther(ctx, next ?? HOME_PATH);
}

/** Checks the present password, which also bounds how often this page hashes one. */
async function findReuse(dashboard: Dashboard, user: Step['user'], password: string) {
  const check = await checkPassword(dashboard, user, password);
  if (check.outcome === 'too_many') return explainLimit(check.minutes);
  return check.outcome === 'right' ? 'Choose another one than the present password.' : undefined;
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
