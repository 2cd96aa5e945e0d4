import type Router from '@koa/router';
import type { RouterContext } from '@koa/router';
import { seeOther } from '../../pages/security';
import {
  readSession,
  type SignInProof,
  type UserDocument,
} from '../../service/merchants/team/sessions';
import { checkCode } from '../../service/merchants/team/sign-in';
import { csrfToken, type Dashboard, HOME_PATH } from '../frame/context';
import { CodeField } from '../frame/fields';
import { field, readOwnForm } from '../frame/form';
import { explainLimit, sendCard, sendNotice, WRONG_CODE } from '../frame/notices';
import {
  hasPasskeys,
  isByPasskey,
  PasskeyButton,
  readPasskey,
  WRONG_PASSKEY,
} from '../frame/passkeys';
import { describeUser, getOrigin, noteVisitor } from '../frame/visitor';
import { getNextPath, openSession } from './open-session';

export const CODE_PATH = '/dashboard/sign-in/code';

interface CodeStep {
  secret: string;
  user: UserDocument;
  next: string | undefined;
  fault?: string;
  status?: number;
}

export function addSignInCode(router: Router, dashboard: Dashboard): void {
  router.get(CODE_PATH, async (ctx) => {
    const mfaSession = await loadMfaSession(ctx, dashboard);
    if (mfaSession === null) return seeOther(ctx, '/dashboard/sign-in');
    showCode(ctx, dashboard, {
      ...mfaSession,
      next: getNextPath(new URLSearchParams(ctx.querystring)),
    });
  });
  router.post(CODE_PATH, (ctx) => acceptCode(ctx, dashboard));
}

async function acceptCode(ctx: RouterContext, dashboard: Dashboard): Promise<void> {
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
  const check = await checkCode(dashboard, user, field(form, 'code'), origin);
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
