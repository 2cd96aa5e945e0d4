import type Router from '@koa/router';
import type { RouterContext } from '@koa/router';
import { isPassword } from '../keys/password';
import { hashSecret } from '../pages/browser';
import { isForeignPost, seeOther } from '../pages/security';
import type { UserDocument } from '../store/users';
import { countAttempt, forgetAttempts, tooMany } from './attempts';
import { type Dashboard, homeOf, sendHtml } from './context';
import { Field } from './fields';
import { field, readForm } from './form';
import { renderCard } from './layout';
import { sendNotice } from './notices';
import { Note } from './parts';
import { beginSession, isCsrfToken } from './session';

const EMAIL_LENGTH_MAX = 254;
/** Addresses that sign-in may lead back to: pages of ours, and nothing else. */
const NEXT = /^\/dashboard\/(?:sandbox|live)(?:\/[\w-]+){1,3}$/;

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
  const email = field(form, 'email').toLowerCase();
  const next = nextOf(form);
  const now = dashboard.now();
  const { throttles, users } = dashboard.stores;
  const counted = { email, address: ctx.ip };
  const minutes = await countAttempt(throttles, counted, now);
  if (minutes > 0) {
    ctx.set('Retry-After', String(minutes * 60));
    return show(ctx, dashboard, { email, next, fault: tooMany(minutes), status: 429 });
  }
  const user = email.length <= EMAIL_LENGTH_MAX ? await users.byEmail(email) : null;
  if (!(await isPassword(form.get('password') ?? '', user?.password_hash)) || user === null) {
    const fault = 'E-mail or password is wrong.';
    return show(ctx, dashboard, { email, next, fault, status: 401 });
  }
  await forgetAttempts(throttles, { email });
  await enter(ctx, dashboard, user, next);
}

/** Begins the session: whole, or waiting for the second factor. */
async function enter(
  ctx: RouterContext,
  dashboard: Dashboard,
  user: UserDocument,
  next: string | undefined,
): Promise<void> {
  const { cookie, stores } = dashboard;
  const before = cookie.read(ctx);
  if (before !== null) await stores.sessions.end(hashSecret(before));
  cookie.give(ctx, await beginSession(stores.sessions, user, 'whole', dashboard.now()));
  seeOther(ctx, next ?? homeOf(dashboard));
}

async function signOut(ctx: RouterContext, dashboard: Dashboard): Promise<void> {
  const secret = dashboard.cookie.read(ctx);
  const form = await readForm(ctx);
  if (secret === null) return seeOther(ctx, '/dashboard/sign-in');
  const isOurs = !isForeignPost(ctx, dashboard.publicUrl);
  if (!isOurs || !isCsrfToken(form?.get('csrf') ?? '', secret)) {
    return sendNotice(ctx, dashboard, 'foreign');
  }
  await dashboard.stores.sessions.end(hashSecret(secret));
  dashboard.cookie.clear(ctx);
  seeOther(ctx, '/dashboard/sign-in');
}

function nextOf(fields: URLSearchParams): string | undefined {
  const next = fields.get('next') ?? '';
  return NEXT.test(next) ? next : undefined;
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
