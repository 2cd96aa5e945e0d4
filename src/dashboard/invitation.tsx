import type Router from '@koa/router';
import type { RouterContext } from '@koa/router';
import { hashPassword, isLongEnough, PASSWORD_LENGTH } from '../keys/password';
import { hashToken, join } from '../merchants/staff';
import { SECRET } from '../pages/browser';
import { isForeignPost, seeOther } from '../pages/security';
import type { InvitationDocument } from '../store/invitations';
import { type Dashboard, sendHtml } from './context';
import { enterWhole } from './enter';
import { Field } from './fields';
import { readForm } from './form';
import { renderCard } from './layout';
import { sendNotice } from './notices';
import { Note } from './parts';

const PATH = '/dashboard/invitation/:token';
const TITLE = 'Join the team';

/** Adds the page behind an invitation's link. The token in it is what authorises. */
export function addInvitation(router: Router, dashboard: Dashboard): void {
  router.get(PATH, async (ctx) => {
    const invitation = await find(ctx, dashboard);
    if (invitation === null) return sendNotice(ctx, dashboard, 'link_over');
    await show(ctx, dashboard, invitation);
  });
  router.post(PATH, (ctx) => accept(ctx, dashboard));
}

async function accept(ctx: RouterContext, dashboard: Dashboard): Promise<void> {
  if (isForeignPost(ctx, dashboard.publicUrl)) return sendNotice(ctx, dashboard, 'foreign');
  const invitation = await find(ctx, dashboard);
  if (invitation === null) return sendNotice(ctx, dashboard, 'link_over');
  const form = await readForm(ctx);
  if (form === null) return sendNotice(ctx, dashboard, 'unreadable');
  const password = form.get('password') ?? '';
  if (!isLongEnough(password)) {
    const { min, max } = PASSWORD_LENGTH;
    return await show(ctx, dashboard, invitation, `Choose ${min} to ${max} characters.`);
  }
  const user = await join(dashboard, ctx.params['token'] ?? '', await hashPassword(password));
  if (user === null) return sendNotice(ctx, dashboard, 'link_over');
  if (user === 'email_taken') {
    const fault = 'This address has a login already. Ask to be invited with another one.';
    return await show(ctx, dashboard, invitation, fault);
  }
  if (!(await enterWhole(ctx, dashboard, user, undefined))) seeOther(ctx, '/dashboard/sign-in');
}

async function find(
  ctx: RouterContext,
  { stores, now }: Dashboard,
): Promise<InvitationDocument | null> {
  const { token = '' } = ctx.params;
  return SECRET.test(token) ? await stores.invitations.find(hashToken(token), now()) : null;
}

async function show(
  ctx: RouterContext,
  { assets, stores }: Dashboard,
  { account_id, email }: InvitationDocument,
  fault?: string,
): Promise<void> {
  const account = await stores.accounts.known(account_id);
  const children = (
    <div class="stack">
      <h1>{TITLE}</h1>
      {fault !== undefined && <Note tone="bad">{fault}</Note>}
      <p>{`${account?.name ?? 'A merchant'} invites ${email} to its payments dashboard.`}</p>
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
