import type Router from '@koa/router';
import type { RouterContext } from '@koa/router';
import { isPassword } from '../keys/password';
import { findLogin } from '../merchants/login';
import { hashSecret } from '../pages/browser';
import { isForeignPost, seeOther } from '../pages/security';
import { countAttempt, forgetAttempts, tooMany } from './attempts';
import { type Dashboard, sendHtml } from './context';
import { enterHalf, enterWhole, nextOf } from './enter';
import { Field } from './fields';
import { field, readForm } from './form';
import { renderCard } from './layout';
import { sendNotice } from './notices';
import { Note } from './parts';
import { isCsrfToken } from './session';

const EMAIL_LENGTH_MAX = 254;

/** Adds sign-in and sign-out. No answer tells whether there is such a user. */
export function addSignIn(router: Router, dashboard: Dashboard): void {
  router.get('/dashboard/sign-in', (ctx) => {
    show(ctx, dashboard, { next: nextOf(ctx.URL.searchParams) });
  });
  router.post('/dashboard/sign-in', (ctx) => signIn(ctx, dashboard));
  router.post('/dashboard/sign-out', (ctx) => signOut(ctx, dashboard));
}

async function signIn(ctx: RouterContext, dashboard: Dashboard): Promise<void> {
  // There is no session to protect yet, so it is enough that the form is our own.
  if (isForeignPost(ctx, dashboard.publicUrl)) return sendNotice(ctx, dashboard, 'foreign');
  const form = await readForm(ctx);
  if (form === null) return sendNotice(ctx, dashboard, 'unreadable');
  const email = field(form, 'email').toLowerCase().slice(0, EMAIL_LENGTH_MAX);
  const next = nextOf(form);
  const { stores, now } = dashboard;
  const counted = { email, address: dashboard.clientAddress(ctx.req) };
  const minutes = await countAttempt(stores.throttles, counted, now());
  if (minutes > 0) {
    ctx.set('Retry-After', String(minutes * 60));
    return show(ctx, dashboard, { email, next, fault: tooMany(minutes), status: 429 });
  }
  const wrong = { email, next, fault: 'E-mail or password is wrong.', status: 401 };
  const user = await findLogin(stores, email);
  if (!(await isPassword(form.get('password') ?? '', user?.password_hash)) || user === null) {
    return show(ctx, dashboard, wrong);
  }
  await forgetAttempts(stores.throttles, counted);
  if (user.totp === null) {
    if (!(await enterWhole(ctx, dashboard, user, next))) show(ctx, dashboard, wrong);
    return;
  }
  if (!(await enterHalf(ctx, dashboard, user))) return show(ctx, dashboard, wrong);
  const query = next === undefined ? '' : `?next=${encodeURIComponent(next)}`;
  seeOther(ctx, `/dashboard/sign-in/code${query}`);
}

async function signOut(ctx: RouterContext, dashboard: Dashboard): Promise<void> {
  const secret = dashboard.cookie.read(ctx);
  if (secret === null) return seeOther(ctx, '/dashboard/sign-in');
  const form = await readForm(ctx);
  const isOurs = !isForeignPost(ctx, dashboard.publicUrl);
  if (!isOurs || !isCsrfToken(form?.get('csrf') ?? '', secret)) {
    return sendNotice(ctx, dashboard, 'foreign');
  }
  await dashboard.stores.sessions.end(hashSecret(secret));
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
