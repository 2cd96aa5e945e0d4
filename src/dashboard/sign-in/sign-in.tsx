import type Router from '@koa/router';
import type { RouterContext } from '@koa/router';
import { hashSecret } from '../../pages/browser';
import { seeOther } from '../../pages/security';
import {
  endSession,
  hasSecondFactor,
  type UserDocument,
} from '../../service/merchants/team/sessions';
import { checkLogin, listMerchants } from '../../service/merchants/team/sign-in';
import { type Dashboard, HOME_PATH } from '../frame/context';
import { Field, PasswordField, Select } from '../frame/fields';
import { field, readOwnForm } from '../frame/form';
import { explainLimit, sendCard, sendNotice } from '../frame/notices';
import { PasskeySignIn } from '../frame/passkeys';
import { describeSession, noteVisitor } from '../frame/visitor';
import { getNextPath, openSession } from './open-session';
import { CODE_PATH } from './sign-in-code';

const EMAIL_LENGTH_MAX = 254;

interface SignInFields {
  email?: string;
  next: string | undefined;
  fault?: string;
  status?: number;
}

/** No answer reveals whether a user exists. */
export function addSignIn(router: Router, dashboard: Dashboard): void {
  router.get('/dashboard/sign-in', (ctx) => {
    showSignIn(ctx, dashboard, { next: getNextPath(new URLSearchParams(ctx.querystring)) });
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
  const device = dashboard.device.hash(ctx);
  const signedDevice = dashboard.device.signedHash(ctx);
  const merchant = field(form, 'merchant') || undefined;
  const login = { email, password, address, device, signedDevice, merchant };
  const check = await checkLogin(dashboard, login);
  const { outcome, user_ids } = check;
  noteVisitor(ctx, { proof: 'password', outcome, ...(outcome !== 'right' && { user_ids }) });
  if (check.outcome === 'too_many') {
    ctx.set('Retry-After', String(check.minutes * 60));
    const fault = explainLimit(check.minutes);
    return showSignIn(ctx, dashboard, { email, next, fault, status: 429 });
  }
  if (check.outcome === 'several') {
    return await showMerchants(ctx, dashboard, { email, next, users: check.users });
  }
  if (check.outcome === 'expired') {
    const fault = 'This password has expired. Ask for a new one.';
    return showSignIn(ctx, dashboard, { email, next, fault, status: 401 });
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
  const proof = { by: 'password' } as const;
  if (!hasSecondFactor(user)) {
    const path = next ?? HOME_PATH;
    return await openSession(ctx, dashboard, user, { stage: 'whole', path, proof });
  }
  const query = next === undefined ? '' : `?next=${encodeURIComponent(next)}`;
  const path = `${CODE_PATH}${query}`;
  return await openSession(ctx, dashboard, user, { stage: 'password', path, proof });
}

async function signOut(ctx: RouterContext, dashboard: Dashboard): Promise<void> {
  const secret = dashboard.cookie.read(ctx);
  if (secret === null) return seeOther(ctx, '/dashboard/sign-in');
  noteVisitor(ctx, describeSession(hashSecret(secret)));
  const form = await readOwnForm(ctx, dashboard.publicUrl, secret);
  if (typeof form === 'string') return sendNotice(ctx, dashboard, 'foreign');
  await endSession(dashboard, secret);
  dashboard.cookie.clear(ctx);
  seeOther(ctx, '/dashboard/sign-in');
}

export function showSignIn(ctx: RouterContext, dashboard: Dashboard, fields: SignInFields): void {
  const { email = '', next, fault, status } = fields;
  const children = (
    <>
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
      <PasskeySignIn publicUrl={dashboard.publicUrl} next={next} />
    </>
  );
  sendCard(ctx, dashboard, { title: 'Sign in', status, fault, children });
}

/** Asks for the password again, too, since a page must not hold it. */
async function showMerchants(
  ctx: RouterContext,
  dashboard: Dashboard,
  { email, next, users }: SignInFields & { users: readonly UserDocument[] },
): Promise<void> {
  const merchants = await listMerchants(dashboard, users);
  const children = (
    <form method="post" action="/dashboard/sign-in" class="form">
      {next !== undefined && <input type="hidden" name="next" value={next} />}
      <input type="hidden" name="email" value={email} />
      <Select label="Merchant" name="merchant" options={merchants} />
      <PasswordField autofocus />
      <button type="submit">Sign in</button>
    </form>
  );
  sendCard(ctx, dashboard, { title: 'Choose a merchant', status: 200, children });
}
