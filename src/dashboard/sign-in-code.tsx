import type Router from '@koa/router';
import type { RouterContext } from '@koa/router';
import { isSecondFactor } from '../merchants/second-factor';
import { hashSecret } from '../pages/browser';
import { isForeignPost, seeOther } from '../pages/security';
import { auditBy } from '../store/audit';
import type { UserDocument } from '../store/users';
import { countAttempt, forgetAttempts, tooMany } from './attempts';
import { type Dashboard, sendHtml } from './context';
import { enterWhole, nextOf } from './enter';
import { Field } from './fields';
import { field, readForm } from './form';
import { renderCard } from './layout';
import { sendNotice } from './notices';
import { Note } from './parts';
import { csrfToken, isCsrfToken } from './session';

const PATH = '/dashboard/sign-in/code';

/** Adds the second step of sign-in: a code of the app, or a recovery code. */
export function addSignInCode(router: Router, dashboard: Dashboard): void {
  router.get(PATH, async (ctx) => {
    const half = await loadHalf(ctx, dashboard);
    if (half === null) return seeOther(ctx, '/dashboard/sign-in');
    show(ctx, dashboard, { secret: half.secret, next: nextOf(ctx.URL.searchParams) });
  });
  router.post(PATH, (ctx) => giveCode(ctx, dashboard));
}

async function giveCode(ctx: RouterContext, dashboard: Dashboard): Promise<void> {
  const half = await loadHalf(ctx, dashboard);
  if (half === null) return seeOther(ctx, '/dashboard/sign-in');
  const { secret, user } = half;
  const form = await readForm(ctx);
  if (form === null) return sendNotice(ctx, dashboard, 'unreadable');
  const isOurs = !isForeignPost(ctx, dashboard.publicUrl);
  if (!isOurs || !isCsrfToken(form.get('csrf') ?? '', secret)) {
    return sendNotice(ctx, dashboard, 'foreign');
  }
  const next = nextOf(form);
  const { throttles } = dashboard.stores;
  const minutes = await countAttempt(throttles, { code: user._id }, dashboard.now());
  if (minutes > 0) {
    ctx.set('Retry-After', String(minutes * 60));
    return show(ctx, dashboard, { secret, next, fault: tooMany(minutes), status: 429 });
  }
  const { _id: user_id, email } = user;
  const audit = auditBy(dashboard, { door: 'dashboard', user_id, email });
  if (!(await isSecondFactor({ ...dashboard, audit }, user, field(form, 'code')))) {
    const fault = 'The code is wrong, too old, or was used before.';
    return show(ctx, dashboard, { secret, next, fault, status: 401 });
  }
  await forgetAttempts(throttles, { code: user_id });
  if (!(await enterWhole(ctx, dashboard, user, next))) seeOther(ctx, '/dashboard/sign-in');
}

/** Loads the session that waits for this step; null when there is none. */
async function loadHalf(
  ctx: RouterContext,
  { cookie, stores, now }: Dashboard,
): Promise<{ secret: string; user: UserDocument } | null> {
  const secret = cookie.read(ctx);
  if (secret === null) return null;
  const session = await stores.sessions.find(hashSecret(secret), now());
  if (session?.stage !== 'password') return null;
  const user = await stores.users.get(session.user_id);
  return user === null ? null : { secret, user };
}

interface CodeProps {
  secret: string;
  next: string | undefined;
  fault?: string;
  status?: number;
}

function show(ctx: RouterContext, { assets }: Dashboard, props: CodeProps): void {
  const { secret, next, fault, status = 200 } = props;
  const children = (
    <div class="stack">
      <h1>Second factor</h1>
      {fault !== undefined && <Note tone="bad">{fault}</Note>}
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
    </div>
  );
  sendHtml(ctx, renderCard({ title: 'Second factor', assets, children }), status);
}
