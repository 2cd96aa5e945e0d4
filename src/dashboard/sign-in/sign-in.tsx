import type Router from '@koa/router';
import type { RouterContext } from '@koa/router';
import { hashSecret } from '../../pages/browser';
import { isForeignPost, seeOther } from '../../pages/security';
import { askForPasskey, findSite } from '../../service/merchants/team/passkeys';
import {
  endSession,
  hasSecondFactor,
  readSession,
  type SignInProof,
  startSession,
  type UserDocument,
} from '../../service/merchants/team/sessions';
import { checkCode, checkLogin, listMerchants } from '../../service/merchants/team/sign-in';
import {
  csrfToken,
  type Dashboard,
  describeSession,
  describeUser,
  getOrigin,
  HOME_PATH,
  nameBrowser,
  noteVisitor,
} from '../frame/context';
import { CodeField, Field, PasswordField, Select } from '../frame/fields';
import { field, readOwnForm } from '../frame/form';
import { explainLimit, sendCard, sendNotice, WRONG_CODE } from '../frame/layout';
import {
  hasPasskeys,
  isByPasskey,
  PASSKEY_SIGN_IN_PATH,
  PasskeyButton,
  PasskeySignIn,
  readPasskey,
  WRONG_PASSKEY,
} from '../frame/passkeys';

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
  router.post('/dashboard/sign-out', async (ctx) => {
    const secret = dashboard.cookie.read(ctx);
    if (secret === null) return seeOther(ctx, '/dashboard/sign-in');
    noteVisitor(ctx, describeSession(hashSecret(secret)));
    const form = await readOwnForm(ctx, dashboard.publicUrl, secret);
    if (typeof form === 'string') return sendNotice(ctx, dashboard, 'foreign');
    await endSession(dashboard, secret);
    dashboard.cookie.clear(ctx);
    seeOther(ctx, '/dashboard/sign-in');
  });
  router.get(CODE_PATH, async (ctx) => {
    const mfaSession = await loadMfaSession(ctx, dashboard);
    if (mfaSession === null) return seeOther(ctx, '/dashboard/sign-in');
    const next = getNextPath(new URLSearchParams(ctx.querystring));
    showCode(ctx, dashboard, { ...mfaSession, next });
  });
  router.post(CODE_PATH, async (ctx) => {
    const mfaSession = await loadMfaSession(ctx, dashboard);
    if (mfaSession === null) return seeOther(ctx, '/dashboard/sign-in');
    const { secret, user } = mfaSession;
    const form = await readOwnForm(ctx, dashboard.publicUrl, secret);
    if (typeof form === 'string') return sendNotice(ctx, dashboard, form);
    const next = getNextPath(form);
    const proof = await proveSecondFactor(ctx, dashboard, user, form);
    if ('fault' in proof) return showCode(ctx, dashboard, { secret, user, next, ...proof });
    const path = next ?? HOME_PATH;
    const isSignedIn = await openSession(ctx, dashboard, user, { stage: 'whole', path, proof });
    if (!isSignedIn) seeOther(ctx, '/dashboard/sign-in');
  });
  router.post(`${PASSKEY_SIGN_IN_PATH}/challenge`, async (ctx) => {
    const site = findSite(dashboard.publicUrl);
    if (isForeignPost(ctx, dashboard.publicUrl)) return sendNotice(ctx, dashboard, 'foreign');
    if (site === null) return sendNotice(ctx, dashboard, 'not_found');
    const signedDevice = dashboard.device.signedHash(ctx);
    const browser = dashboard.device.bind(ctx);
    const address = dashboard.clientAddress(ctx.req);
    const ask = () => askForPasskey(dashboard, site, { browser, signedDevice, address });
    const request = await dashboard.limitSignIns({ signedDevice, address }, ask);
    const { minutes, options } = request ?? { minutes: 1, options: undefined };
    if (minutes > 0) {
      ctx.status = 429;
      ctx.set('Retry-After', String(minutes * 60));
    }
    ctx.body = options ?? explainLimit(minutes);
  });
  // A passkey stands for password and second factor.
  router.post(PASSKEY_SIGN_IN_PATH, async (ctx) => {
    const form = await readOwnForm(ctx, dashboard.publicUrl, null);
    if (typeof form === 'string') return sendNotice(ctx, dashboard, form);
    const next = getNextPath(form);
    const used = await readPasskey(ctx, dashboard, form);
    const isSignedIn =
      used !== null &&
      (await openSession(ctx, dashboard, used.user, {
        ...{ stage: 'whole', path: next ?? HOME_PATH },
        proof: { by: 'passkey', passkey: used.passkey },
      }));
    if (!isSignedIn) showSignIn(ctx, dashboard, { next, fault: WRONG_PASSKEY, status: 401 });
  });
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
  if (check.outcome === 'right') {
    const query = next === undefined ? '' : `?next=${encodeURIComponent(next)}`;
    const step = hasSecondFactor(check.user)
      ? ({ stage: 'password', path: `${CODE_PATH}${query}` } as const)
      : ({ stage: 'whole', path: next ?? HOME_PATH } as const);
    const session = { ...step, proof: { by: 'password' } } as const;
    if (await openSession(ctx, dashboard, check.user, session)) return;
  }
  const fault = 'E-mail or password is wrong.';
  showSignIn(ctx, dashboard, { email, next, fault, status: 401 });
}

function showSignIn(ctx: RouterContext, dashboard: Dashboard, fields: SignInFields): void {
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

const CODE_PATH = '/dashboard/sign-in/code';

interface CodeStep {
  secret: string;
  user: UserDocument;
  next: string | undefined;
  fault?: string;
  status?: number;
}

async function proveSecondFactor(
  ctx: RouterContext,
  dashboard: Dashboard,
  user: UserDocument,
  form: URLSearchParams,
): Promise<SignInProof | { fault: string; status: number }> {
  if (isByPasskey(form)) {
    const proof = await readPasskey(ctx, dashboard, form, user);
    if (proof === null) return { fault: WRONG_PASSKEY, status: 401 };
    return { by: 'password, passkey', passkey: proof.passkey };
  }
  const origin = getOrigin(ctx, dashboard);
  const device = dashboard.device.hash(ctx);
  const attempt = { code: field(form, 'code'), device, origin };
  const check = await checkCode(dashboard, user, attempt);
  noteVisitor(ctx, { proof: 'code', outcome: check.outcome });
  if (check.outcome === 'too_many') {
    ctx.set('Retry-After', String(check.minutes * 60));
    return { fault: explainLimit(check.minutes), status: 429 };
  }
  if (check.outcome === 'wrong') return { fault: WRONG_CODE, status: 401 };
  return { by: 'password, code' };
}

async function loadMfaSession(ctx: RouterContext, dashboard: Dashboard) {
  const secret = dashboard.cookie.read(ctx);
  const visit = secret === null ? null : await readSession(dashboard, secret);
  if (secret === null || visit?.session.stage !== 'password') return null;
  noteVisitor(ctx, describeUser(visit.user, visit.session._id));
  return { secret, user: visit.user };
}

function showCode(
  ctx: RouterContext,
  dashboard: Dashboard,
  { secret, user, next, fault, status }: CodeStep,
): void {
  const canUsePasskey = hasPasskeys(user, dashboard.publicUrl);
  const children = (
    <>
      <form method="post" action={CODE_PATH} class="form">
        <input type="hidden" name="csrf" value={csrfToken(secret)} />
        {next !== undefined && <input type="hidden" name="next" value={next} />}
        <CodeField autofocus required={!canUsePasskey} />
        <button type="submit">Continue</button>
        {canUsePasskey && <PasskeyButton label="Use a passkey" />}
      </form>
      <p>
        <a href="/dashboard/sign-in">Back to the password</a>
      </p>
    </>
  );
  sendCard(ctx, dashboard, { title: 'Second factor', status, fault, children });
}

/** @returns false when what was checked has changed since */
export async function openSession(
  ctx: RouterContext,
  dashboard: Dashboard,
  user: UserDocument,
  { path, ...fresh }: { stage: 'password' | 'whole'; path: string; proof: SignInProof },
): Promise<boolean> {
  const { cookie, device } = dashboard;
  const deviceSecret = device.readOrSign(ctx);
  const origin = getOrigin(ctx, dashboard);
  const cookies = { device: hashSecret(deviceSecret), oldSecret: cookie.read(ctx) };
  const browser = nameBrowser(ctx.get('User-Agent'));
  const session = { ...fresh, ...cookies, browser, origin };
  const secret = await startSession(dashboard, user, session);
  if (secret === null) return false;
  noteVisitor(ctx, describeUser(user, hashSecret(secret)));
  cookie.write(ctx, secret);
  if (fresh.stage === 'whole') device.write(ctx, deviceSecret);
  seeOther(ctx, path);
  return true;
}

/** Only addresses to which sign-in leads back. */
const NEXT = /^\/dashboard\/(?:sandbox|live)(?:\/[\w-]+){1,3}$/;

export function getNextPath(fields: URLSearchParams): string | undefined {
  const next = fields.get('next') ?? '';
  return NEXT.test(next) ? next : undefined;
}
