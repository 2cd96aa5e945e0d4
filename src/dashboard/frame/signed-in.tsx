import type Router from '@koa/router';
import type { RouterContext } from '@koa/router';
import type { ComponentChildren } from 'preact';
import { mayAct } from '../../domain/merchants/dashboard-role';
import { toLowerId } from '../../domain/shape';
import { hashSecret } from '../../pages/browser';
import { seeOther } from '../../pages/security';
import { accountNow } from '../../service/merchants/clock';
import { mustReplacePassword } from '../../service/merchants/team/members';
import {
  hasSecondFactor,
  readSession,
  type Visit as SessionVisit,
  setFlash,
} from '../../service/merchants/team/sessions';
import {
  type CheckResult,
  checkCode,
  checkPassword,
  findKnownDevice,
} from '../../service/merchants/team/sign-in';
import { auditAsUser } from '../../service/operators/audit/log';
import {
  csrfToken,
  type Dashboard,
  describeUser,
  getOrigin,
  NEW_PASSWORD_PATH,
  noteVisitor,
  sendHtml,
} from './context';
import { Field, ProofFields } from './fields';
import { field, readOwnUpload } from './form';
import {
  explainLimit,
  findEntry,
  NOTICES,
  Notice,
  type NoticeName,
  renderSignedIn,
  sendNotice,
  WRONG_CODE,
} from './layout';
import { CallPage, Note, PageHead, PostForm } from './parts';
import { hasPasskeys, isByPasskey, readPasskey, WRONG_PASSKEY } from './passkeys';
import type { Answer, Call, Confirmation, Env, Proof, Route, Viewer } from './route';

export function addSignedIn(router: Router, dashboard: Dashboard, routes: readonly Route[]): void {
  for (const route of routes) {
    router[route.method](`/dashboard/:env${route.path}`, async (ctx, next) => {
      const { env } = ctx.params;
      // `/dashboard/assets/payments` has no environment.
      if (env !== 'sandbox' && env !== 'live') return await next();
      await serve(ctx, dashboard, route, env);
    });
  }
}

interface Visit extends Pick<SessionVisit, 'session' | 'user'> {
  ctx: RouterContext;
  dashboard: Dashboard;
  route: Route;
  call: Call;
}

/** Checks session → limits → role → form token, before the visit takes its share. */
async function serve(ctx: RouterContext, dashboard: Dashboard, route: Route, env: Env) {
  const secret = dashboard.cookie.read(ctx);
  const sessionWait = secret === null ? 0 : await dashboard.visits.findWait(hashSecret(secret));
  if (sessionWait > 0) return refuseVisit(ctx, dashboard, sessionWait);
  const visit = secret === null ? null : await loadVisit(ctx, dashboard, { route, env, secret });
  if (visit === null || secret === null) return redirectWithNext(ctx, '/dashboard/sign-in');
  if (visit.session.stage !== 'whole') return seeOther(ctx, '/dashboard/sign-in/code');
  if (mustReplacePassword(visit.user)) return redirectWithNext(ctx, NEW_PASSWORD_PATH);
  const accountWait = await dashboard.visits.count(visit.call.viewer, route);
  if (accountWait > 0) return refuseVisit(ctx, dashboard, accountWait);
  const { call } = visit;
  if (route.crypto && !call.viewer.account.crypto) return notice(visit, 'not_found');
  if (!call.may(route.act)) return notice(visit, 'forbidden');
  // A body that comes slowly takes nothing of the account's share.
  const sent =
    route.method === 'get' ? null : await readOwnUpload(ctx, dashboard.publicUrl, secret, route);
  if (typeof sent === 'string') return notice(visit, sent);
  const isRescue = sent !== null && route.whileFrozen === true;
  const kind =
    call.viewer.user.role !== 'owner' ? 'visit' : isRescue ? 'owner_rescue' : 'owner_visit';
  await dashboard.runInShare({ ...call.scope, kind }, () =>
    sent === null ? handle(visit) : act({ ...visit, call: { ...call, ...sent } }),
  );
}

function refuseVisit(ctx: RouterContext, dashboard: Dashboard, waitSeconds: number): void {
  ctx.set('Retry-After', String(waitSeconds));
  sendNotice(ctx, dashboard, 'too_many');
}

/** Checks freeze → second factor → confirmation. */
async function act(visit: Visit): Promise<void> {
  const { dashboard, route, call } = visit;
  const { account, user, livemode } = call.viewer;
  if (account.frozen && route.whileFrozen !== true) return notice(visit, 'frozen');
  const needsFactor = route.act === 'team.change' || (livemode && route.act !== 'self.change');
  if (needsFactor && dashboard.isSecondFactorRequired && !user.hasSecondFactor) {
    const bad = 'Nothing was done: it needs a second factor. Set one up here first.';
    return await answer(visit, { go: '/profile', bad });
  }
  if (await requireConfirmation(visit)) return;
  await handle(visit);
}

async function handle(visit: Visit): Promise<void> {
  const { route, call, dashboard } = visit;
  await answer(visit, await route.handle(call, { ...dashboard, audit: call.audit }));
}

async function loadVisit(
  ctx: RouterContext,
  dashboard: Dashboard,
  { route, env, secret }: { route: Route; env: Env; secret: string },
): Promise<Visit | null> {
  const visit = await readSession(dashboard, secret);
  if (visit === null) return null;
  const { session, user, account } = visit;
  const livemode = env === 'live';
  const caller = describeUser(user, session._id);
  noteVisitor(ctx, { ...caller, livemode });
  const origin = getOrigin(ctx, dashboard);
  const viewer: Viewer = {
    user: {
      id: user._id,
      email: user.email,
      role: user.role,
      hasSecondFactor: hasSecondFactor(user),
      hasPasskeys: hasPasskeys(user, dashboard.publicUrl),
    },
    account: {
      id: account._id,
      name: account.name,
      crypto: account.crypto,
      frozen: account.frozen !== undefined,
      refundStepUp: account.refund_step_up ?? {},
      clock: account.clock,
    },
    env,
    livemode,
    session: session._id,
    knownDevice: findKnownDevice(user, dashboard.device.hash(ctx)),
    csrf: csrfToken(secret),
  };
  const scope = { account_id: account._id, livemode };
  const call: Call = {
    viewer,
    scope,
    path: ctx.path.slice(`/dashboard/${env}`.length),
    id: toLowerId(ctx.params['id'] ?? ''),
    // A malformed Host makes `ctx.URL` unreadable.
    query: new URLSearchParams(ctx.querystring),
    form: new URLSearchParams(),
    file: null,
    requestId: origin.request_id,
    now: await accountNow(dashboard, scope),
    may: (act) => mayAct(user.role, act),
    audit: auditAsUser(dashboard, user, { ...origin, session: caller.session }),
    href: (path) => `/dashboard/${env}${path}`,
  };
  return { ctx, dashboard, route, call, session, user };
}

async function requireConfirmation(visit: Visit): Promise<boolean> {
  const { route, call, dashboard } = visit;
  const { title, confirmation } = route;
  if (confirmation === undefined) return false;
  if (confirmation.liveOnly && !call.viewer.livemode) return false;
  const { proof: rule } = confirmation;
  const proof = typeof rule === 'function' ? await rule(call, dashboard) : rule;
  const confirmed = call.form.get('confirmed') === 'yes';
  const fault = confirmed ? await findProofFault(visit, proof) : null;
  if (confirmed && fault === null) return false;
  const own = call.path.startsWith('/profile/') ? '/profile' : '/overview';
  const back = call.href(findEntry(call.path)?.path ?? own);
  const refusal = await confirmation.refuse?.(call, { ...dashboard, audit: call.audit });
  if (refusal !== undefined) {
    await answer(visit, refusal);
    return true;
  }
  const page = { call, route, confirmation, proof, back, fault: fault ?? undefined };
  show(visit, <ConfirmPage {...page} />, { title, status: fault === null ? 200 : 403 });
  return true;
}

/** Checks the password first, so that a wrong one does not use up the code or passkey. */
async function findProofFault(
  { ctx, dashboard, user, call }: Visit,
  proof: Proof | undefined,
): Promise<string | null> {
  if (proof === undefined) return null;
  const password = await checkPassword(dashboard, user, call.form.get('password') ?? '');
  noteVisitor(ctx, { proof: 'password_again', outcome: password.outcome });
  const fault = toFault(password, 'The password is wrong.');
  if (fault !== null || proof === 'password' || !hasSecondFactor(user)) return fault;
  if (isByPasskey(call.form)) {
    return (await readPasskey(ctx, dashboard, call.form, user)) === null ? WRONG_PASSKEY : null;
  }
  const code = field(call.form, 'code');
  if (code === '') return 'Enter a code too.';
  const attempt = { code, device: dashboard.device.hash(ctx), origin: getOrigin(ctx, dashboard) };
  const check = await checkCode(dashboard, user, attempt);
  noteVisitor(ctx, { proof: 'code', outcome: check.outcome });
  return toFault(check, WRONG_CODE);
}

function toFault(check: CheckResult, wrong: string): string | null {
  if (check.outcome === 'too_many') return explainLimit(check.minutes);
  return check.outcome === 'wrong' ? wrong : null;
}

async function answer(visit: Visit, result: Answer): Promise<void> {
  const { ctx, session, dashboard, route } = visit;
  if (result === 'not_found') return notice(visit, 'not_found');
  if (result === 'signed_out') return seeOther(ctx, '/dashboard/sign-in');
  if ('go' in result) {
    const { go, good, bad } = result;
    if (good !== undefined) await setFlash(dashboard, session, { tone: 'good', text: good });
    if (bad !== undefined) await setFlash(dashboard, session, { tone: 'bad', text: bad });
    return seeOther(ctx, visit.call.href(go));
  }
  if ('download' in result) {
    ctx.status = 200;
    ctx.type = result.type;
    ctx.attachment(result.filename);
    ctx.body = result.download;
    return;
  }
  if (session.flash !== null) await setFlash(dashboard, session, null);
  const { page, title = route.title, status = 200 } = 'page' in result ? result : { page: result };
  show(visit, page, { title, status });
}

function notice(visit: Visit, name: NoticeName): void {
  show(visit, <Notice name={name} />, NOTICES[name]);
}

function show(
  { ctx, dashboard, call, session }: Visit,
  page: ComponentChildren,
  { title, status }: { title: string; status: number },
): void {
  const { assets } = dashboard;
  const { viewer, path } = call;
  const { flash } = session;
  const children = <CallPage call={call}>{page}</CallPage>;
  sendHtml(ctx, renderSignedIn({ title, assets, viewer, path, flash, children }), status);
}

function redirectWithNext(ctx: RouterContext, path: string): void {
  const next = ctx.method === 'GET' ? `?next=${encodeURIComponent(ctx.path)}` : '';
  seeOther(ctx, `${path}${next}`);
}

const OWN_FIELDS = new Set(['csrf', 'confirmed', 'password', 'code', 'passkey', 'new_password']);

interface ConfirmPageProps {
  call: Call;
  route: Route;
  confirmation: Confirmation;
  proof: Proof | undefined;
  back: string;
  fault?: string | undefined;
}

/** Repeats the form's fields, to work without JavaScript; a file must be chosen again. */
function ConfirmPage({ call, route, confirmation, proof, back, fault }: ConfirmPageProps) {
  const { form, path } = call;
  const { title, upload } = route;
  const { question } = confirmation;
  const button =
    typeof confirmation.button === 'string' ? confirmation.button : confirmation.button(form);
  const hiddenFields = [...form].filter(([name]) => !OWN_FIELDS.has(name));
  return (
    <>
      <PageHead title={title} />
      {fault !== undefined && <Note tone="bad">{fault}</Note>}
      <section class="panel narrow">
        <p>{typeof question === 'string' ? question : question(form)}</p>
        <PostForm {...{ path, button }} hidden={{ confirmed: 'yes' }} isUpload={upload && true}>
          {hiddenFields.map(([name, value]) => (
            <input key={`${name}=${value}`} type="hidden" name={name} value={value} />
          ))}
          {upload && <Field label={upload.label} name={upload.field} type="file" required />}
          {proof && <ProofFields user={call.viewer.user} proof={proof} autofocus />}
        </PostForm>
        <a href={back}>Back without doing it</a>
      </section>
    </>
  );
}
