import { ROLE_NAMES } from '../../domain/account/dashboard-role';
import { hashPassword, isLongEnough, PASSWORD_LENGTH } from '../../encryption/password';
import { changePassword, signOutEverywhere } from '../../service/team/login';
import { getMember } from '../../service/team/members';
import { Field } from '../frame/fields';
import { Facts, PageHead, Panel, PostForm, When } from '../frame/parts';
import type { Answer, Call, Confirmation, PageDeps, Route } from '../frame/route';
import { SecondFactorPanel } from '../sign-in/second-factor';

const PATH = '/profile';

const selfRoute = { act: 'self.change' } as const;
const TITLE = 'Your profile';

const PASSWORD_CONFIRMATION: Confirmation = {
  question: 'Enter your current password to choose another one.',
  button: 'Change password',
  password: true,
};

export const PROFILE_ROUTES: readonly Route[] = [
  { ...selfRoute, method: 'get', path: PATH, title: TITLE, handle: show },
  {
    ...selfRoute,
    method: 'post',
    path: `${PATH}/password`,
    title: TITLE,
    whileFrozen: true,
    confirmation: PASSWORD_CONFIRMATION,
    handle: setPassword,
  },
  {
    ...selfRoute,
    method: 'post',
    path: `${PATH}/sign-out-everywhere`,
    title: 'Sign out everywhere',
    whileFrozen: true,
    confirmation: {
      question: 'All your sessions end, this one too.',
      button: 'Sign out everywhere',
    },
    handle: endSessions,
  },
];

async function show(call: Call, deps: PageDeps): Promise<Answer> {
  const member = await getMember(deps, call.viewer.user.id);
  if (member === null) return 'not_found';
  const { viewer } = call;
  return {
    page: (
      <>
        <PageHead title={TITLE} />
        <Panel>
          <Facts
            rows={[
              ['E-mail', member.email],
              ['Role', ROLE_NAMES[member.role]],
              ['Last signed in', <When key="at" at={member.signed_in_at} />],
            ]}
          />
        </Panel>
        <SecondFactorPanel call={call} member={member} />
        <Panel title="Password">
          <PostForm
            viewer={viewer}
            action={call.href(`${PATH}/password`)}
            button="Change password"
            hidden={{ confirmed: 'yes' }}
          >
            <Field
              label="Present password"
              name="password"
              type="password"
              autocomplete="current-password"
              required
            />
            <Field
              label="New password"
              name="new_password"
              type="password"
              autocomplete="new-password"
              hint={`At least ${PASSWORD_LENGTH.min} characters. Your other sessions end.`}
              minLength={PASSWORD_LENGTH.min}
              maxLength={PASSWORD_LENGTH.max}
              required
            />
          </PostForm>
        </Panel>
        <Panel title="Sessions">
          <p class="muted">End all of them if you lost a device.</p>
          <PostForm
            viewer={viewer}
            action={call.href(`${PATH}/sign-out-everywhere`)}
            button="Sign out everywhere"
            tone="danger"
          />
        </Panel>
      </>
    ),
  };
}

async function setPassword(call: Call, deps: PageDeps): Promise<Answer> {
  const password = call.form.get('new_password') ?? '';
  if (!isLongEnough(password)) {
    const { min, max } = PASSWORD_LENGTH;
    return back(call, 'bad', `Nothing was changed: choose ${min} to ${max} characters.`);
  }
  const { id, account_id } = { id: call.viewer.user.id, account_id: call.scope.account_id };
  const change = { password_hash: await hashPassword(password), keep: call.viewer.session };
  await changePassword(deps, { _id: id, account_id }, change);
  return back(call, 'good', 'Your password is changed, and your other sessions are ended.');
}

async function endSessions(call: Call, deps: PageDeps): Promise<Answer> {
  const member = { _id: call.viewer.user.id, account_id: call.scope.account_id };
  await signOutEverywhere(deps, member);
  return { go: '/dashboard/sign-in' };
}

function back(call: Call, tone: 'good' | 'bad', text: string): Answer {
  return { go: call.href(PATH), flash: { tone, text } };
}
