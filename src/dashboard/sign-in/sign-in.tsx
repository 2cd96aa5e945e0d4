import type Router from '@koa/router';
import type { RouterContext } from '@koa/router';
import { isForeignPost, seeOther } from '../../pages/security';
import { endSession, type UserDocument } from '../../service/team/sessions';
import { checkLogin } from '../../service/team/sign-in';
import { type Dashboard, getHomePath, sendHtml } from '../frame/context';
import { Field } from '../frame/fields';
import { field, readForm } from '../frame/form';
import { renderCard } from '../frame/layout';
import { explainLimit, sendNotice } from '../frame/notices';
import { Note } from '../frame/parts';
import { isCsrfToken } from '../frame/session-cookie';
import { getNextPath, openSession } from './session';

const EMAIL_LENGTH_MAX = 254;

/** Adds sign-in and sign-out. No answer reveals whether a user exists. */
export function addSignIn(router: Router, dashboard: Dashboard): void {
  router.get('/dashboard/sign-in', (ctx) => {
    show(ctx, dashboard, { next: getNextPath(ctx.URL.searchParams) });
  });
  router.post('/dashboard/sign-in', (ctx) => signIn(ctx, dashboard));
  router.post('/dashboard/sign-out', (ctx) => signOut(ctx, dashboard));
}

async function signIn(ctx: RouterContext, dashboard: Dashboard): Promise<void> {
  // No session exists yet, so only the origin of the form is checked.
  if (isForeignPost(ctx, dashboard.publicUrl)) return sendNotice(ctx, dashboard, 'foreign');
  const form = await readForm(ctx);
  if (form === null) return sendNotice(ctx, dashboard, 'unreadable');
  const email = field(form, 'email').toLowerCase().slice(0, EMAIL_LENGTH_MAX);
  const next = getNextPath(form);
  const password = form.get('password') ?? '';
  const address = dashboard.clientAddress(ctx.req);
  const check = await checkLogin(dashboard, { email, password, address });
  if (check.outcome === 'too_many') {
    ctx.set('Retry-After', String(check.minutes * 60));
    const fault = explainLimit(check.minutes);
    return show(ctx, dashboard, { email, next, fault, status: 429 });
  }
  const hasSession =
    check.outcome === 'right' && (await openNextSession(ctx, dashboard, check.user, next));
  if (!hasSession) {
    const fault = 'E-mail or password is wrong.';
    show(ctx, dashboard, { email, next, fault, status: 401 });
  }
}

async function openNextSession(
  ctx: RouterContext,
  dashboard: Dashboard,
  user: UserDocument,
  next: string | undefined,
): Promise<boolean> {
  if (user.totp === null) {
    const path = next ?? getHomePath(dashboard);
    return await openSession(ctx, dashboard, user, { stage: 'whole', path });
  }
  const query = next === undefined ? '' : `?next=${encodeURIComponent(next)}`;
  const path = `/dashboard/sign-in/code${query}`;
  return await openSession(ctx, dashboard, user, { stage: 'password', path });
}

async function signOut(ctx: RouterContext, dashboard: Dashboard): Promise<void> {
  const secret = dashboard.cookie.read(ctx);
  if (secret === null) return seeOther(ctx, '/dashboard/sign-in');
  const form = await readForm(ctx);
  const isOurs = !isForeignPost(ctx, dashboard.publicUrl);
  if (!isOurs || !isCsrfToken(form?.get('csrf') ?? '', secret)) {
    return sendNotice(ctx, dashboard, 'foreign');
  }
  await endSession(dashboard, secret);
  dashboard.cookie.clear(ctx);
  seeOther(ctx, '/dashboard/sign-in');
}

interface SignInProps {
  email?: string;
  next: string | undefined;
  fault?: string;
  status?: number;
}

function show(ctx: RouterContext, { assets }: Dashboard, props: SignInProps): void {
  const { email = '', next, fault, status = 200 } = props;
  const children = (
    <div class="stack">
      <h1>Sign in</h1>
      {fault !== undefined && <Note tone="bad">{fault}</Note>}
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
        <Field
          label="Password"
          name="password"
          type="password"
          autocomplete="current-password"
          required
        />
        <button type="submit">Sign in</button>
      </form>
    </div>
  );
  sendHtml(ctx, renderCard({ title: 'Sign in', assets, children }), status);
}
