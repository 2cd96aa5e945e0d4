import type Router from '@koa/router';
import type { RouterContext } from '@koa/router';
import { hashPassword, isLongEnough, PASSWORD_LENGTH } from '../../encryption/password';
import { SECRET } from '../../pages/browser';
import { isForeignPost, seeOther } from '../../pages/security';
import { acceptInvitation, findInvitation } from '../../service/team/members';
import { type Dashboard, getHomePath, sendHtml } from '../frame/context';
import { Field } from '../frame/fields';
import { readForm } from '../frame/form';
import { renderCard } from '../frame/layout';
import { sendNotice } from '../frame/notices';
import { Note } from '../frame/parts';
import { openSession } from './session';

const PATH = '/dashboard/invitation/:token';
const TITLE = 'Join the team';

type Invitation = NonNullable<Awaited<ReturnType<typeof findInvitation>>>;

/** Adds the page of an invitation, which the token in its link authorizes. */
export function addInvitation(router: Router, dashboard: Dashboard): void {
  router.get(PATH, async (ctx) => {
    const invitation = await find(ctx, dashboard);
    if (invitation === null) return sendNotice(ctx, dashboard, 'link_over');
    show(ctx, dashboard, invitation);
  });
  router.post(PATH, (ctx) => accept(ctx, dashboard));
}

async function accept(ctx: RouterContext, dashboard: Dashboard): Promise<void> {
  if (isForeignPost(ctx, dashboard.publicUrl)) return sendNotice(ctx, dashboard, 'foreign');
  const { token = '' } = ctx.params;
  const invitation = await find(ctx, dashboard);
  if (invitation === null) return sendNotice(ctx, dashboard, 'link_over');
  const form = await readForm(ctx);
  if (form === null) return sendNotice(ctx, dashboard, 'unreadable');
  const password = form.get('password') ?? '';
  if (!isLongEnough(password)) {
    const { min, max } = PASSWORD_LENGTH;
    return show(ctx, dashboard, invitation, `Choose ${min} to ${max} characters.`);
  }
  const user = await acceptInvitation(dashboard, token, await hashPassword(password));
  if (user === null) return sendNotice(ctx, dashboard, 'link_over');
  if (user === 'email_taken') {
    const fault = 'This address has a login already. Ask to be invited with another one.';
    return show(ctx, dashboard, invitation, fault);
  }
  const path = getHomePath(dashboard);
  const isSignedIn = await openSession(ctx, dashboard, user, { stage: 'whole', path });
  if (!isSignedIn) seeOther(ctx, '/dashboard/sign-in');
}

async function find(ctx: RouterContext, dashboard: Dashboard): Promise<Invitation | null> {
  const { token = '' } = ctx.params;
  return SECRET.test(token) ? await findInvitation(dashboard, token) : null;
}

function show(
  ctx: RouterContext,
  { assets }: Dashboard,
  { email, merchant = 'A merchant' }: Invitation,
  fault?: string,
): void {
  const children = (
    <div class="stack">
      <h1>{TITLE}</h1>
      {fault !== undefined && <Note tone="bad">{fault}</Note>}
      <p>{`${merchant} invites ${email} to its payments dashboard.`}</p>
      <form method="post" action={ctx.path} class="form">
        <input type="hidden" name="username" autocomplete="username" value={email} />
        <Field
          label="Password"
          name="password"
          type="password"
          autocomplete="new-password"
          hint={`At least ${PASSWORD_LENGTH.min} characters.`}
          minLength={PASSWORD_LENGTH.min}
          maxLength={PASSWORD_LENGTH.max}
          required
          autofocus
        />
        <button type="submit">Join</button>
      </form>
    </div>
  );
  sendHtml(ctx, renderCard({ title: TITLE, assets, children }), fault === undefined ? 200 : 422);
}
