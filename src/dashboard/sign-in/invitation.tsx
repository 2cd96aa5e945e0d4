import type Router from '@koa/router';
import type { RouterContext } from '@koa/router';
import { hashPassword } from '../../encryption/password';
import { SECRET } from '../../pages/browser';
import { seeOther } from '../../pages/security';
import { acceptInvitation, findInvitation } from '../../service/merchants/team/members';
import { type Dashboard, HOME_PATH } from '../frame/context';
import { NewPasswordField } from '../frame/fields';
import { readOwnForm } from '../frame/form';
import { sendCard, sendNotice } from '../frame/notices';
import { findPasswordFault } from '../frame/password-fault';
import { getOrigin } from '../frame/visitor';
import { openSession } from './open-session';

const PATH = '/dashboard/invitation/:token';

type Invitation = NonNullable<Awaited<ReturnType<typeof findInvitation>>>;

/** Token in the link authorizes. */
export function addInvitation(router: Router, dashboard: Dashboard): void {
  router.get(PATH, async (ctx) => {
    const invitation = await find(ctx, dashboard);
    if (invitation === null) return sendNotice(ctx, dashboard, 'link_over');
    show(ctx, dashboard, invitation);
  });
  router.post(PATH, (ctx) => accept(ctx, dashboard));
}

async function accept(ctx: RouterContext, dashboard: Dashboard): Promise<void> {
  const form = await readOwnForm(ctx, dashboard.publicUrl, null);
  if (typeof form === 'string') return sendNotice(ctx, dashboard, form);
  const { token = '' } = ctx.params;
  const invitation = await find(ctx, dashboard);
  if (invitation === null) return sendNotice(ctx, dashboard, 'link_over');
  const password = form.get('password') ?? '';
  const fault = findPasswordFault(password);
  if (fault !== undefined) return show(ctx, dashboard, invitation, fault);
  const password_hash = await hashPassword(password);
  const user = await acceptInvitation(dashboard, token, password_hash, getOrigin(ctx, dashboard));
  if (user === null) return sendNotice(ctx, dashboard, 'link_over');
  if (user === 'is_member') {
    const text = 'This address is a member of the team already: sign in.';
    return show(ctx, dashboard, invitation, text);
  }
  const path = HOME_PATH;
  const proof = { by: 'invitation' } as const;
  const isSignedIn = await openSession(ctx, dashboard, user, { stage: 'whole', path, proof });
  if (!isSignedIn) seeOther(ctx, '/dashboard/sign-in');
}

async function find(ctx: RouterContext, dashboard: Dashboard): Promise<Invitation | null> {
  const { token = '' } = ctx.params;
  return SECRET.test(token) ? await findInvitation(dashboard, token) : null;
}

function show(
  ctx: RouterContext,
  dashboard: Dashboard,
  { email, merchant = 'A merchant' }: Invitation,
  fault?: string,
): void {
  const children = (
    <>
      <p>{`${merchant} invites ${email} to its payments dashboard.`}</p>
      <form method="post" action={ctx.path} class="form">
        <input type="hidden" name="username" autocomplete="username" value={email} />
        <NewPasswordField label="Password" name="password" autofocus />
        <button type="submit">Join</button>
      </form>
    </>
  );
  const status = fault === undefined ? 200 : 422;
  sendCard(ctx, dashboard, { title: 'Join the team', status, fault, children });
}
