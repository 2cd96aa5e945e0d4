import type Router from '@koa/router';
import type { RouterContext } from '@koa/router';
import type { ComponentChildren } from 'preact';
import { mayAct } from '../domain/dashboard-role';
import { isPassword } from '../keys/password';
import { hashSecret } from '../pages/browser';
import { isForeignPost, seeOther } from '../pages/security';
import { auditBy } from '../store/audit';
import type { SessionDocument } from '../store/sessions';
import type { UserDocument } from '../store/users';
import { AskPage } from './ask';
import { countAttempt, forgetAttempts, tooMany } from './attempts';
import { type Dashboard, sendHtml } from './context';
import { readForm } from './form';
import { renderSignedIn } from './layout';
import { entryOf } from './navigation';
import { NOTICES, Notice, type NoticeName } from './notices';
import type { Answer, Call, Env, Route, Viewer } from './route';
import { csrfToken, isCsrfToken, useSession } from './session';

/** Puts the table of routes on the router; each passes the same row of checks. */
export function addSignedIn(router: Router, dashboard: Dashboard, routes: readonly Route[]): void {
  for (const route of routes) {
    router[route.method](`/dashboard/:env${route.path}`, async (ctx, next) => {
      const env = envOf(ctx.params['env']);
      // An address such as `/dashboard/assets/payments` is none of ours.
      if (env === null) return await next();
      await serve(ctx, dashboard, route, env);
    });
  }
}

interface Visit {
  ctx: RouterContext;
  dashboard: Dashboard;
  route: Route;
  call: Call;
  session: SessionDocument;
  user: UserDocument;
}

/** Session → role → token → freeze → question → handler. */
async function serve(ctx: RouterContext, dashboard: Dashboard, route: Route, env: Env) {
  const secret = dashboard.cookie.read(ctx);
  const visit = secret === null ? null : await begin(ctx, dashboard, { route, env, secret });
  if (visit === null || secret === null) return askToSignIn(ctx);
  if (visit.session.stage !== 'whole') return seeOther(ctx, '/dashboard/sign-in/code');
  if (route.crypto && !visit.call.viewer.account.crypto) return notice(visit, 'not_found');
  if (!visit.call.may(route.act)) return notice(visit, 'forbidden');
  if (route.method === 'get') return await answer(visit, await handle(visit));
  if (isForeignPost(ctx, dashboard.publicUrl)) return notice(visit, 'foreign');
  const form = await readForm(ctx);
  if (form === null) return notice(visit, 'unreadable');
  if (!isCsrfToken(form.get('csrf') ?? '', secret)) return notice(visit, 'foreign');
  const isFrozen = visit.call.viewer.account.frozen;
  if (isFrozen && route.whileFrozen !== true) return notice(visit, 'frozen');
  const posted = { ...visit, call: { ...visit.call, form } };
  if (await isAsked(posted)) return;
  await answer(posted, await handle(posted));
}

function handle({ route, call, dashboard }: Visit): Promise<Answer> {
  return route.handle(call, dashboard);
}

/** Loads session, user and account as they stand now; null when one of them is gone. */
async function begin(
  ctx: RouterContext,
  dashboard: Dashboard,
  { route, env, secret }: { route: Route; env: Env; secret: string },
): Promise<Visit | null> {
  const { stores } = dashboard;
  const now = dashboard.now();
  const session = await stores.sessions.find(hashSecret(secret), now);
  if (session === null) return null;
  const [user, account] = await Promise.all([
    stores.users.get(session.user_id),
    stores.accounts.known(session.account_id),
  ]);
  if (user === null || account === null || user.account_id !== account._id) return null;
  await useSession(stores.sessions, session, now);
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
    now,
    may: (act) => mayAct(user.role, act),
    audit: auditBy(dashboard, { door: 'dashboard', user_id: user._id, email: user.email }),
    href: (path) => `/dashboard/${env}${path}`,
  };
  return { ctx, dashboard, route, call, session, user };
}

/** Asks once more, or for the password, where the route wants it; true when it has answered so. */
async function isAsked(visit: Visit): Promise<boolean> {
  const { route, call, ctx } = visit;
  if (route.ask === undefined) return false;
  const given = call.form.get('password');
  const confirmed = call.form.get('confirmed') === 'yes';
  const fault = confirmed && route.ask.password ? await passwordFault(visit, given ?? '') : null;
  if (confirmed && fault === null) return false;
  const { viewer, form } = call;
  const { title, ask } = route;
  const back = call.href(entryOf(visit.dashboard.navigation, call.path)?.path ?? '');
  const page = { viewer, ask, title, form, action: ctx.path, back, fault: fault ?? undefined };
  show(visit, <AskPage {...page} />, { title, status: fault === null ? 200 : 403 });
  return true;
}

async function passwordFault({ dashboard, user, call }: Visit, given: string) {
  const { throttles } = dashboard.stores;
  const counted = { again: user._id };
  const minutes = await countAttempt(throttles, counted, call.now);
  if (minutes > 0) return tooMany(minutes);
  if (!(await isPassword(given, user.password_hash))) return 'The password is wrong.';
  await forgetAttempts(throttles, counted);
  return null;
}

async function answer(visit: Visit, given: Answer): Promise<void> {
  const { ctx, call, session, dashboard, route } = visit;
  if (given === 'not_found') return notice(visit, 'not_found');
  if ('go' in given) {
    if (given.flash) await dashboard.stores.sessions.setFlash(call.viewer.session, given.flash);
    return seeOther(ctx, given.go);
  }
  if ('download' in given) {
    ctx.status = 200;
    ctx.type = given.type;
    ctx.attachment(given.filename);
    ctx.body = given.download;
    return;
  }
  if (session.flash !== null) await dashboard.stores.sessions.setFlash(session._id, null);
  show(visit, given.page, { title: given.title ?? route.title, status: given.status ?? 200 });
}

function notice(visit: Visit, name: NoticeName): void {
  show(visit, <Notice name={name} />, NOTICES[name]);
}

function show(
  { ctx, dashboard, call, session }: Visit,
  page: ComponentChildren,
  { title, status }: { title: string; status: number },
): void {
  const { assets, navigation } = dashboard;
  const { viewer, path } = call;
  const { flash } = session;
  const shell = { title, assets, navigation, viewer, path, flash, children: page };
  sendHtml(ctx, renderSignedIn(shell), status);
}

/** Leads to sign-in, and from there back to a page that was asked for. */
function askToSignIn(ctx: RouterContext): void {
  const next = ctx.method === 'GET' ? `?next=${encodeURIComponent(ctx.path)}` : '';
  seeOther(ctx, `/dashboard/sign-in${next}`);
}

function envOf(text: string | undefined): Env | null {
  return text === 'sandbox' || text === 'live' ? text : null;
}
