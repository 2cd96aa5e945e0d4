import { ROLE_NAMES } from '../domain/dashboard-role';
import { hashPassword, isLongEnough, PASSWORD_LENGTH } from '../keys/password';
import { changePassword, signOutEverywhere } from '../merchants/login';
import type { DashboardDeps } from './deps';
import { Field } from './fields';
import { Facts, PageHead, Panel, PostForm, When } from './parts';
import type { Answer, Ask, Call, Route } from './route';
import { SecondFactorPanel } from './second-factor';

const PATH = '/profile';

const own = { act: 'self.change' } as const;
const TITLE = 'Your profile';

const ASK_PASSWORD: Ask = {
  question: 'Give your present password to choose another one.',
  button: 'Change password',
  password: true,
};

export const PROFILE_ROUTES: readonly Route[] = [
  { ...own, method: 'get', path: PATH, title: TITLE, handle: show },
  {
    ...own,
    method: 'post',
    path: `${PATH}/password`,
    title: TITLE,
    whileFrozen: true,
    ask: ASK_PASSWORD,
    handle: setPassword,
  },
  {
    ...own,
    method: 'post',
    path: `${PATH}/sign-out-everywhere`,
    title: 'Sign out everywhere',
    whileFrozen: true,
    ask: {
      question: 'All your sessions end, this one too.',
      button: 'Sign out everywhere',
    },
    handle: endSessions,
  },
];

async function show(call: Call, { stores }: DashboardDeps): Promise<Answer> {
  const user = await stores.users.get(call.viewer.user.id);
  if (user === null) return 'not_found';
  const { viewer } = call;
  return {
    page: (
      <>
        <PageHead title={TITLE} />
        <Panel>
          <Facts
            rows={[
              ['E-mail', user.email],
              ['Role', ROLE_NAMES[user.role]],
              ['Last signed in', <When key="at" at={user.signed_in_at} />],
            ]}
          />
        </Panel>
        <SecondFactorPanel call={call} user={user} />
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
          <p class="muted">On a browser that you no longer have? End all of them.</p>
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

async function setPassword(call: Call, deps: DashboardDeps): Promise<Answer> {
  const password = call.form.get('new_password') ?? '';
  if (!isLongEnough(password)) {
    const { min, max } = PASSWORD_LENGTH;
    return back(call, 'bad', `Nothing was changed: choose ${min} to ${max} characters.`);
  }
  const { id, account_id } = { id: call.viewer.user.id, account_id: call.scope.account_id };
  const change = { password_hash: await hashPassword(password), keep: call.viewer.session };
  await changePassword({ ...deps, audit: call.audit }, { _id: id, account_id }, change);
  return back(call, 'good', 'Your password is changed, and your other sessions are ended.');
}

async function endSessions(call: Call, deps: DashboardDeps): Promise<Answer> {
  const person = { _id: call.viewer.user.id, account_id: call.scope.account_id };
  await signOutEverywhere({ ...deps, audit: call.audit }, person);
  return { go: '/dashboard/sign-in' };
}

function back(call: Call, tone: 'good' | 'bad', text: string): Answer {
  return { go: call.href(PATH), flash: { tone, text } };
}
