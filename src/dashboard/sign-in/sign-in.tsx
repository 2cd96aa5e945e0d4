import type Router from '@koa/router';
import type { RouterContext } from '@koa/router';
import { seeOther } from '../../pages/security';
import {
  endSession,
  readSession,
  startSession,
  type UserDocument,
} from '../../service/team/sessions';
import { checkCode, checkLogin } from '../../service/team/sign-in';
import { csrfToken, type Dashboard, HOME_PATH } from '../frame/context';
import { Field, PasswordField } from '../frame/fields';
import { field, readOwnForm } from '../frame/form';
import { explainLimit, sendCard, sendNotice } from '../frame/notices';

const EMAIL_LENGTH_MAX = 254;
/** Pages of the dashboard, the only addresses that sign-in leads back to. */
const NEXT = /^\/dashboard\/(?:sandbox|live)(?:\/[\w-]+){1,3}$/;

interface SignInFields {
  email?: string;
  next: string | undefined;
  fault?: string;
  status?: number;
}

/** Adds sign-in and sign-out. No answer reveals whether a user exists. */
export function addSignIn(router: Router, dashboard: Dashboard): void {
  router.get('/dashboard/sign-in', (ctx) => {
    showSignIn(ctx, dashboard, { next: getNextPath(ctx.URL.searchParams) });
  });
  router.post('/dashboard/sign-in', (ctx) => signIn(ctx, dashboard));
  router.post('/dashboard/sign-out', (ctx) => signOut(ctx, dashboard));
}

async function signIn(ctx: RouterContext, dashboard: Dashboard): Promise<void> {
  // No session exists yet, so only the origin of the form is checked.
  const form = await readOwnForm(ctx, dashboard.publicUrl, null);
  if (typeof form === 'string') return sendNotice(ctx, dashboard, form);
  const email = field(form, 'email').toLowerCase().slice(0, EMAIL_LENGTH_MAX);
  const next = getNextPath(form);
  const password = form.get('password') ?? '';
  const address = dashboard.clientAddress(ctx.req);
  const check = await checkLogin(dashboard, { email, password, address });
  if (check.outcome === 'too_many') {
    ctx.set('Retry-After', String(check.minutes * 60));
    const fault = explainLimit(check.minutes);
    return showSignIn(ctx, dashboard, { email, next, fault, status: 429 });
  }
  const hasSession =
    check.outcome === 'right' && (await openNextSession(ctx, dashboard, check.user, next));
  if (!hasSession) {
    const fault = 'E-mail or password is wrong.';
    showSignIn(ctx, dashboard, { email, next, fault, status: 401 });
  }
}

async function openNextSession(
  ctx: RouterContext,
  dashboard: Dashboard,
  user: UserDocument,
  next: string | undefined,
): Promise<boolean> {
  if (user.totp === null) {
    const path = next ?? HOME_PATH;
    return await openSession(ctx, dashboard, user, { stage: 'whole', path });
  }
  const query = next === undefined ? '' : `?next=${encodeURIComponent(next)}`;
  const path = `${CODE_PATH}${query}`;
  return await openSession(ctx, dashboard, user, { stage: 'password', path });
}

async function signOut(ctx: RouterContext, dashboard: Dashboard): Promise<void> {
  const secret = dashboard.cookie.read(ctx);
  if (secret === null) return seeOther(ctx, '/dashboard/sign-in');
  const form = await readOwnForm(ctx, dashboard.publicUrl, secret);
  if (typeof form === 'string') return sendNotice(ctx, dashboard, 'foreign');
  await endSession(dashboard, secret);
  dashboard.cookie.clear(ctx);
  seeOther(ctx, '/dashboard/sign-in');
}

function showSignIn(ctx: RouterContext, dashboard: Dashboard, fields: SignInFields): void {
  const { email = '', next, fault, status } = fields;
  const children = (
    <form method="post" action="/dashboard/sign-in" class="form">
      {next !== undefined && <input type="hidden" name="next" value={next} />}
      <Field
        label="E-mail"
        name="email"
        type="email"
        value={email}
        autocomplete="username"
        required
        autofocus
      />
      <PasswordField />
      <button type="submit">Sign in</button>
    </form>
  );
  sendCard(ctx, dashboard, { title: 'Sign in', status, fault, children });
}

function getNextPath(fields: URLSearchParams): string | undefined {
  const next = fields.get('next') ?? '';
  return NEXT.test(next) ? next : undefined;
}

/**
 * Replaces the browser's session, and redirects to `path`.
 * @returns false when the password has changed since it was checked
 */
export async function openSession(
  ctx: RouterContext,
  dashboard: Dashboard,
  user: UserDocument,
  { stage, path }: { stage: 'password' | 'whole'; path: string },
): Promise<boolean> {
  const { cookie } = dashboard;
  const secret = await startSession(dashboard, user, stage, cookie.read(ctx));
  if (secret === null) return false;
  cookie.write(ctx, secret);
  seeOther(ctx, path);
  return true;
}

const CODE_PATH = '/dashboard/sign-in/code';

/** Adds the second step of sign-in: a one-time code or a recovery code. */
export function addSignInCode(router: Router, dashboard: Dashboard): void {
  router.get(CODE_PATH, async (ctx) => {
    const mfaSession = await loadMfaSession(ctx, dashboard);
    if (mfaSession === null) return seeOther(ctx, '/dashboard/sign-in');
    showCode(ctx, dashboard, {
      secret: mfaSession.secret,
      next: getNextPath(ctx.URL.searchParams),
    });
  });
  router.post(CODE_PATH, (ctx) => acceptCode(ctx, dashboard));
}

async function acceptCode(ctx: RouterContext, dashboard: Dashboard): Promise<void> {
  const mfaSession = await loadMfaSession(ctx, dashboard);
  if (mfaSession === null) return seeOther(ctx, '/dashboard/sign-in');
  const { secret, user } = mfaSession;
  const form = await readOwnForm(ctx, dashboard.publicUrl, secret);
  if (typeof form === 'string') return sendNotice(ctx, dashboard, form);
  const next = getNextPath(form);
  const check = await checkCode(dashboard, user, field(form, 'code'));
  if (check.outcome === 'too_many') {
    ctx.set('Retry-After', String(check.minutes * 60));
    const fault = explainLimit(check.minutes);
    return showCode(ctx, dashboard, { secret, next, fault, status: 429 });
  }
  if (check.outcome === 'wrong') {
    const fault = 'The code is wrong, too old, or was used before.';
    return showCode(ctx, dashboard, { secret, next, fault, status: 401 });
  }
  const path = next ?? HOME_PATH;
  const isSignedIn = await openSession(ctx, dashboard, user, { stage: 'whole', path });
  if (!isSignedIn) seeOther(ctx, '/dashboard/sign-in');
}

async function loadMfaSession(ctx: RouterContext, dashboard: Dashboard) {
  const secret = dashboard.cookie.read(ctx);
  const visit = secret === null ? null : await readSession(dashboard, secret);
  if (secret === null || visit?.session.stage !== 'password') return null;
  return { secret, user: visit.user };
}

function showCode(
  ctx: RouterContext,
  dashboard: Dashboard,
  fields: SignInFields & { secret: string },
): void {
  const { secret, next, fault, status } = fields;
  const children = (
    <>
      <form method="post" action={CODE_PATH} class="form">
        <input type="hidden" name="csrf" value={csrfToken(secret)} />
        {next !== undefined && <input type="hidden" name="next" value={next} />}
        <Field
          label="Code"
          name="code"
          autocomplete="one-time-code"
          hint="From your app, or one of your recovery codes."
          maxLength={30}
          required
          autofocus
        />
        <button type="submit">Continue</button>
      </form>
      <p>
        <a href="/dashboard/sign-in">Back to the password</a>
      </p>
    </>
  );
  sendCard(ctx, dashboard, { title: 'Second factor', status, fault, children });
}
