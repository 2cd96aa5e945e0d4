import type Router from '@koa/router';
import type { RouterContext } from '@koa/router';
import { seeOther } from '../../pages/security';
import { readSession, type UserDocument } from '../../service/team/sessions';
import { checkCode } from '../../service/team/sign-in';
import { type Dashboard, getHomePath } from '../frame/context';
import { Field } from '../frame/fields';
import { field, readOwnForm } from '../frame/form';
import { explainLimit, sendCard, sendNotice } from '../frame/notices';
import { csrfToken } from '../frame/session-cookie';
import { getNextPath, openSession } from './sign-in';

const PATH = '/dashboard/sign-in/code';

/** Adds the second step of sign-in: a one-time code or a recovery code. */
export function addSignInCode(router: Router, dashboard: Dashboard): void {
  router.get(PATH, async (ctx) => {
    const mfaSession = await loadMfaSession(ctx, dashboard);
    if (mfaSession === null) return seeOther(ctx, '/dashboard/sign-in');
    show(ctx, dashboard, { secret: mfaSession.secret, next: getNextPath(ctx.URL.searchParams) });
  });
  router.post(PATH, (ctx) => acceptCode(ctx, dashboard));
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
    return show(ctx, dashboard, { secret, next, fault, status: 429 });
  }
  if (check.outcome === 'wrong') {
    const fault = 'The code is wrong, too old, or was used before.';
    return show(ctx, dashboard, { secret, next, fault, status: 401 });
  }
  const path = next ?? getHomePath(dashboard);
  const isSignedIn = await openSession(ctx, dashboard, user, { stage: 'whole', path });
  if (!isSignedIn) seeOther(ctx, '/dashboard/sign-in');
}

async function loadMfaSession(
  ctx: RouterContext,
  dashboard: Dashboard,
): Promise<{ secret: string; user: UserDocument } | null> {
  const secret = dashboard.cookie.read(ctx);
  const visit = secret === null ? null : await readSession(dashboard, secret);
  if (secret === null || visit?.session.stage !== 'password') return null;
  return { secret, user: visit.user };
}

interface CodeProps {
  secret: string;
  next: string | undefined;
  fault?: string;
  status?: number;
}

function show(ctx: RouterContext, dashboard: Dashboard, props: CodeProps): void {
  const { secret, next, fault, status } = props;
  const children = (
    <>
      <form method="post" action={PATH} class="form">
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
