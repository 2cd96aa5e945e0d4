import { ROLE_NAMES } from '../../domain/account/dashboard-role';
import { hashPassword } from '../../encryption/password';
import { getMember } from '../../service/merchants/team/members';
import { changePassword } from '../../service/merchants/team/sessions';
import { NewPasswordField, PasswordField } from '../frame/fields';
import { redirect } from '../frame/form';
import { Facts, PageHead, Panel, PostForm, When } from '../frame/parts';
import { findPasswordFault } from '../frame/password-fault';
import { type Answer, type Call, getSelf, type PageDeps, type Route } from '../frame/route';
import { PasskeysPanel } from '../sign-in/passkeys';
import { SecondFactorPanel } from '../sign-in/second-factor';
import { loadSessions, SessionsPanel } from './sessions';

const PATH = '/profile';

const selfRoute = { act: 'self.change' } as const;
const TITLE = 'Your profile';

export const PROFILE_ROUTES: readonly Route[] = [
  { ...selfRoute, method: 'get', path: PATH, title: TITLE, handle: show },
  {
    ...selfRoute,
    method: 'post',
    path: `${PATH}/password`,
    title: TITLE,
    whileFrozen: true,
    confirmation: {
      question: 'Enter your current password to choose another one.',
      button: 'Change password',
      proof: 'password',
    },
    handle: setPassword,
  },
];

async function show(call: Call, deps: PageDeps): Promise<Answer> {
  const member = await getMember(deps, call.viewer.user.id);
  if (member === null) return 'not_found';
  const sessions = await loadSessions(call, deps);
  return (
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
      <PasskeysPanel call={call} member={member} publicUrl={deps.publicUrl} />
      <Panel title="Password">
        <PostForm
          call={call}
          path={`${PATH}/password`}
          button="Change password"
          hidden={{ confirmed: 'yes' }}
        >
          <PasswordField label="Present password" />
          <NewPasswordField
            label="New password"
            name="new_password"
            hint=" Your other sessions end."
          />
        </PostForm>
      </Panel>
      <SessionsPanel call={call} sessions={sessions} />
    </>
  );
}

async function setPassword(call: Call, deps: PageDeps): Promise<Answer> {
  const password = call.form.get('new_password') ?? '';
  const fault = findPasswordFault(password);
  if (fault !== undefined) return redirect(call, PATH, 'bad', `Nothing was changed. ${fault}`);
  const change = { password_hash: await hashPassword(password), keep: call.viewer.session };
  const isChanged = await changePassword(deps, getSelf(call), change);
  if (!isChanged) return { go: '/dashboard/sign-in' };
  const text = 'Your password is changed, and your other sessions are ended.';
  return redirect(call, PATH, 'good', text);
}
