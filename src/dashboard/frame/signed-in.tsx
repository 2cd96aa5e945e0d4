import type Router from '@koa/router';
import type { RouterContext } from '@koa/router';
import type { ComponentChildren } from 'preact';
import { mayAct } from '../../domain/account/dashboard-role';
import { seeOther } from '../../pages/security';
import { auditAsUser } from '../../service/audit-log';
import { readSession, type Visit as SessionVisit, setFlash } from '../../service/team/sessions';
import { checkPassword } from '../../service/team/sign-in';
import { csrfToken, type Dashboard, sendHtml } from './context';
import { PasswordField } from './fields';
import { readOwnForm } from './form';
import { findEntry, renderSignedIn } from './layout';
import { explainLimit, NOTICES, Notice, type NoticeName } from './notices';
import { Note, PageHead, PostForm } from './parts';
import type { Answer, Call, Confirmation, Env, Route, Viewer } from './route';

export function addSignedIn(router: Router, dashboard: Dashboard, routes: readonly Route[]): void {
  for (const route of routes) {
    router[route.method](`/dashboard/:env${route.path}`, async (ctx, next) => {
      const env = parseEnv(ctx.params['env']);
      // `/dashboard/assets/payments` has no environment.
      if (env === null) return await next();
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

/** Checks session → role → form token → freeze → confirmation, then handles. */
async function serve(ctx: RouterContext, dashboard: Dashboard, route: Route, env: Env) {
  const secret = dashboard.cookie.read(ctx);
  const visit = secret === null ? null : await loadVisit(ctx, dashboard, { route, env, secret });
  if (visit === null || secret === null) return redirectToSignIn(ctx);
  if (visit.session.stage !== 'whole') return seeOther(ctx, '/dashboard/sign-in/code');
  if (route.crypto && !visit.call.viewer.account.crypto) return notice(visit, 'not_found');
  if (!visit.call.may(route.act)) return notice(visit, 'forbidden');
  if (route.method === 'get') return await answer(visit, await handle(visit));
  const form = await readOwnForm(ctx, dashboard.publicUrl, secret);
  if (typeof form === 'string') return notice(visit, form);
  const isFrozen = visit.call.viewer.account.frozen;
  if (isFrozen && route.whileFrozen !== true) return notice(visit, 'frozen');
  const postVisit = { ...visit, call: { ...visit.call, form } };
  if (await requireConfirmation(postVisit)) return;
  await answer(postVisit, await handle(postVisit));
}

function handle({ route, call, dashboard }: Visit): Promise<Answer> {
  return route.handle(call, { ...dashboard, audit: call.audit });
}

/** Loads session, user and account; null where one is gone. */
async function loadVisit(
  ctx: RouterContext,
  dashboard: Dashboard,
  { route, env, secret }: { route: Route; env: Env; secret: string },
): Promise<Visit | null> {
  const visit = await readSession(dashboard, secret);
  if (visit === null) return null;
  const { session, user, account } = visit;
  const livemode = env === 'live';
  const viewer: Viewer = {
    user: { id: user._id, email: user.email, role: user.role },
    account: {
      id: account._id,
      name: account.name,
      crypto: account.crypto,
      frozen: account.frozen !== undefined,
    },
    env,
    livemode,
    session: session._id,
    csrf: csrfToken(secret),
  };
  const call: Call = {
    viewer,
    scope: { account_id: account._id, livemode },
    path: ctx.path.slice(`/dashboard/${env}`.length),
    params: ctx.params,
    query: ctx.URL.searchParams,
    form: new URLSearchParams(),
    requestId: String(ctx.state['requestId'] ?? 'unknown'),
    now: dashboard.now(),
    may: (act) => mayAct(user.role, act),
    audit: auditAsUser(dashboard, user),
    href: (path) => `/dashboard/${env}${path}`,
  };
  return { ctx, dashboard, route, call, session, user };
}

/** Shows the confirmation page where it is due; true when shown. */
async function requireConfirmation(visit: Visit): Promise<boolean> {
  const { route, call } = visit;
  if (route.confirmation === undefined) return false;
  const password = call.form.get('password');
  const confirmed = call.form.get('confirmed') === 'yes';
  const fault =
    confirmed && route.confirmation.password ? await passwordFault(visit, password ?? '') : null;
  if (confirmed && fault === null) return false;
  const { title, confirmation } = route;
  const back = call.href(findEntry(call.path)?.path ?? '');
  const page = { call, confirmation, title, back, fault: fault ?? undefined };
  show(visit, <ConfirmPage {...page} />, { title, status: fault === null ? 200 : 403 });
  return true;
}

async function passwordFault({ dashboard, user }: Visit, password: string) {
  const check = await checkPassword(dashboard, user, password);
  if (check.outcome === 'too_many') return explainLimit(check.minutes);
  return check.outcome === 'wrong' ? 'The password is wrong.' : null;
}

async function answer(visit: Visit, result: Answer): Promise<void> {
  const { ctx, session, dashboard, route } = visit;
  if (result === 'not_found') return notice(visit, 'not_found');
  if ('go' in result) {
    if (result.flash) await setFlash(dashboard, session, result.flash);
    return seeOther(ctx, result.go);
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
  sendHtml(ctx, renderSignedIn({ title, assets, viewer, path, flash, children: page }), status);
}

function redirectToSignIn(ctx: RouterContext): void {
  const next = ctx.method === 'GET' ? `?next=${encodeURIComponent(ctx.path)}` : '';
  seeOther(ctx, `/dashboard/sign-in${next}`);
}

function parseEnv(text: string | undefined): Env | null {
  return text === 'sandbox' || text === 'live' ? text : null;
}

/** Fields that the page sets itself, or must not repeat. */
const OWN_FIELDS = new Set(['csrf', 'confirmed', 'password', 'new_password']);

interface ConfirmPageProps {
  call: Call;
  confirmation: Confirmation;
  title: string;
  back: string;
  fault?: string | undefined;
}

/**
 * Asks for confirmation. It repeats the fields of the form, so that it works without JavaScript.
 */
function ConfirmPage({ call, confirmation, title, back, fault }: ConfirmPageProps) {
  const { form, path } = call;
  const { question, button, password } = confirmation;
  const hiddenFields = [...form].filter(([name]) => !OWN_FIELDS.has(name));
  return (
    <>
      <PageHead title={title} />
      {fault !== undefined && <Note tone="bad">{fault}</Note>}
      <section class="panel narrow">
        <p>{typeof question === 'string' ? question : question(form)}</p>
        <PostForm call={call} path={path} button={button} hidden={{ confirmed: 'yes' }}>
          {hiddenFields.map(([name, value]) => (
            <input key={`${name}=${value}`} type="hidden" name={name} value={value} />
          ))}
          {password && <PasswordField autofocus />}
        </PostForm>
        <a href={back}>Back without doing it</a>
      </section>
    </>
  );
}
