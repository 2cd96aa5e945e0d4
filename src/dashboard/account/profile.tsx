import { ROLE_NAMES } from '../../domain/account/dashboard-role';
import { hashPassword } from '../../encryption/password';
import { getMember } from '../../service/merchants/team/members';
import {
  changePassword,
  endOtherSession,
  endOtherSessions,
  type ListedSession,
  listSessions,
  signOutEverywhere,
} from '../../service/merchants/team/sessions';
import { NewPasswordField, PasswordField } from '../frame/fields';
import { field, findPasswordFault, redirect } from '../frame/form';
import {
  Badge,
  Facts,
  PageHead,
  Panel,
  PostForm,
  type Row,
  Table,
  useCall,
  When,
} from '../frame/parts';
import { type Call, getSelf, postRoute, type Route } from '../frame/route';
import { PasskeysPanel, SecondFactorPanel } from '../sign-in/second-factor';

const PATH = '/profile';
const SESSIONS_PATH = `${PATH}/sessions`;
const TITLE = 'Your profile';

export const PROFILE_ROUTES: readonly Route[] = [
  {
    method: 'get',
    act: 'self.change',
    path: PATH,
    title: TITLE,
    handle: async (call, deps) => {
      const member = await getMember(deps, call.viewer.user.id);
      if (member === null) return 'not_found';
      const sessions = await listSessions(deps, member.id);
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
          <SecondFactorPanel member={member} />
          <PasskeysPanel member={member} publicUrl={deps.publicUrl} />
          <Panel title="Password">
            <PostForm
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
          <SessionsPanel sessions={sessions} />
        </>
      );
    },
  },
  postRoute(`${PATH}/password`, 'self.change', {
    title: TITLE,
    whileFrozen: true,
    confirmation: {
      question: 'Enter your current password to choose another one.',
      button: 'Change password',
      proof: 'password',
    },
    handle: async (call, deps) => {
      const password = call.form.get('new_password') ?? '';
      const fault = findPasswordFault(password);
      if (fault !== undefined) return redirect(call, PATH, 'bad', `Nothing was changed. ${fault}`);
      const change = { password_hash: await hashPassword(password), keep: call.viewer.session };
      const isChanged = await changePassword(deps, getSelf(call), change);
      if (!isChanged) return { go: '/dashboard/sign-in' };
      const text = 'Your password is changed, and your other sessions are ended.';
      return redirect(call, PATH, 'good', text);
    },
  }),
  postRoute(`${SESSIONS_PATH}/end`, 'self.change', {
    whileFrozen: true,
    title: 'End a session',
    handle: async (call, deps) => {
      const id = field(call.form, 'session');
      // Sign-out also clears this browser's cookie.
      if (id === call.viewer.session) return 'not_found';
      const isEnded = await endOtherSession(deps, getSelf(call), id);
      const text = isEnded ? 'The session is ended.' : 'The session has ended already.';
      return redirect(call, PATH, 'good', text);
    },
  }),
  postRoute(`${SESSIONS_PATH}/end-others`, 'self.change', {
    whileFrozen: true,
    title: 'End all other sessions',
    handle: async (call, deps) => {
      await endOtherSessions(deps, getSelf(call), call.viewer.session);
      return redirect(call, PATH, 'good', 'All your other sessions are ended.');
    },
  }),
  postRoute(`${PATH}/sign-out-everywhere`, 'self.change', {
    whileFrozen: true,
    title: 'Sign out everywhere',
    confirmation: {
      question: 'All your sessions end, this one too.',
      button: 'Sign out everywhere',
    },
    handle: async (call, deps) => {
      await signOutEverywhere(deps, getSelf(call));
      return { go: '/dashboard/sign-in' };
    },
  }),
];

function SessionsPanel({ sessions }: { sessions: readonly ListedSession[] }) {
  const call = useCall();
  return (
    <Panel title="Sessions">
      <p class="muted">End those that you do not know, and change your password then.</p>
      <Table
        label="Sessions"
        head={['Browser', 'Network', 'Since', 'Last seen', 'Act']}
        rows={sessions.map((session) => toRow(call, session))}
        none="There are no sessions."
      />
      <div class="inline">
        {sessions.length > 1 && (
          <PostForm
            path={`${SESSIONS_PATH}/end-others`}
            button="End all other sessions"
            tone="danger"
            class="inline"
          />
        )}
        <PostForm
          path={`${PATH}/sign-out-everywhere`}
          button="Sign out everywhere"
          tone="danger"
          class="inline"
        />
      </div>
    </Panel>
  );
}

function toRow(call: Call, { id, browser, network, created_at, seen_at }: ListedSession): Row {
  return {
    key: id,
    cells: [
      browser,
      network ?? <span class="muted">–</span>,
      <When key="since" at={created_at.toISOString()} />,
      <When key="seen" at={seen_at.toISOString()} />,
      id === call.viewer.session ? (
        <Badge key="this" tone="good">
          This browser
        </Badge>
      ) : (
        <PostForm
          key="end"
          path={`${SESSIONS_PATH}/end`}
          hidden={{ session: id }}
          button="End session"
          tone="danger"
          class="inline"
        />
      ),
    ],
  };
}
