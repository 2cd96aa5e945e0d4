import { ROLE_NAMES } from '../../domain/merchants/dashboard-role';
import { hashPassword } from '../../encryption/password';
import { QrCode } from '../../pages/layout';
import { getMember, type TeamMember } from '../../service/merchants/team/members';
import {
  addPasskey,
  findSite,
  offerPasskey,
  PASSKEYS_MAX,
  removePasskey,
} from '../../service/merchants/team/passkeys';
import {
  getOffer,
  offerSecret,
  switchOff,
  switchOn,
} from '../../service/merchants/team/second-factor';
import {
  changePassword,
  endOtherSession,
  endOtherSessions,
  type ListedSession,
  listSessions,
  signOutEverywhere,
} from '../../service/merchants/team/sessions';
import { limitCodes } from '../../service/merchants/team/sign-in';
import { Field, NewPasswordField, PasswordField } from '../frame/fields';
import { field, findPasswordFault } from '../frame/form';
import { explainLimit } from '../frame/layout';
import {
  Badge,
  Copyable,
  Facts,
  Note,
  PageHead,
  Panel,
  PostForm,
  Table,
  useCall,
  When,
} from '../frame/parts';
import { NO_PASSKEYS, PasskeyButton } from '../frame/passkeys';
import { type Call, getSelf, postRoute, type Route } from '../frame/route';

const PROFILE = '/profile';
const FACTOR_PATH = `${PROFILE}/second-factor`;
const PASSKEYS_PATH = `${PROFILE}/passkeys`;
const SESSIONS_PATH = `${PROFILE}/sessions`;
const TITLE = 'Your profile';

export const PROFILE_ROUTES: readonly Route[] = [
  {
    method: 'get',
    act: 'self.change',
    path: PROFILE,
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
              path={`${PROFILE}/password`}
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
  postRoute(`${PROFILE}/password`, 'self.change', {
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
      if (fault !== undefined) return { go: PROFILE, bad: `Nothing was changed. ${fault}` };
      const change = { password_hash: await hashPassword(password), keep: call.viewer.session };
      const isChanged = await changePassword(deps, getSelf(call), change);
      if (!isChanged) return 'signed_out';
      return { go: PROFILE, good: 'Your password is changed, and your other sessions are ended.' };
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
      const good = isEnded ? 'The session is ended.' : 'The session has ended already.';
      return { go: PROFILE, good };
    },
  }),
  postRoute(`${SESSIONS_PATH}/end-others`, 'self.change', {
    whileFrozen: true,
    title: 'End all other sessions',
    handle: async (call, deps) => {
      await endOtherSessions(deps, getSelf(call), call.viewer.session);
      return { go: PROFILE, good: 'All your other sessions are ended.' };
    },
  }),
  postRoute(`${PROFILE}/sign-out-everywhere`, 'self.change', {
    whileFrozen: true,
    title: 'Sign out everywhere',
    confirmation: {
      question: 'All your sessions end, this one too.',
      button: 'Sign out everywhere',
    },
    handle: async (call, deps) => {
      await signOutEverywhere(deps, getSelf(call));
      return 'signed_out';
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
        rows={sessions}
        columns={[
          ['Browser', ({ browser }) => browser],
          ['Network', ({ network }) => network ?? <span class="muted">–</span>],
          ['Since', ({ created_at }) => <When at={created_at.toISOString()} />],
          ['Last seen', ({ seen_at }) => <When at={seen_at.toISOString()} />],
          [
            'Act',
            ({ id }) =>
              id === call.viewer.session ? (
                <Badge tone="good">This browser</Badge>
              ) : (
                <PostForm
                  path={`${SESSIONS_PATH}/end`}
                  hidden={{ session: id }}
                  button="End session"
                  tone="danger"
                  class="inline"
                />
              ),
          ],
        ]}
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
          path={`${PROFILE}/sign-out-everywhere`}
          button="Sign out everywhere"
          tone="danger"
          class="inline"
        />
      </div>
    </Panel>
  );
}

const ADD_PASSKEY = 'Add a passkey';

export const SECOND_FACTOR_ROUTES: readonly Route[] = [
  postRoute(FACTOR_PATH, 'self.change', {
    title: 'Set up a second factor',
    whileFrozen: true,
    confirmation: {
      question: 'You need an app for one-time codes.',
      button: 'Set up',
      proof: 'step_up',
    },
    handle: async (call, deps) => {
      await offerSecret(deps, getEnrollment(call));
      return { go: FACTOR_PATH };
    },
  }),
  {
    act: 'self.change',
    method: 'get',
    path: FACTOR_PATH,
    title: 'Second factor',
    handle: async (call, deps) => {
      const enrollment = await getOffer(deps, getEnrollment(call), call.viewer.account);
      if (enrollment === null) return { go: PROFILE };
      return (
        <>
          <PageHead title="Set up a second factor" />
          <Panel>
            <p>Scan this with your app, or type the secret, and enter the code that it shows.</p>
            <QrCode text={enrollment.uri} label="To be scanned with your app" />
            <Copyable label="secret" text={enrollment.secret} />
            <PostForm path={`${FACTOR_PATH}/confirm`} button="Switch on">
              <Field
                label="Code"
                name="code"
                inputmode="numeric"
                autocomplete="one-time-code"
                required
                maxLength={10}
              />
            </PostForm>
          </Panel>
        </>
      );
    },
  },
  postRoute(`${FACTOR_PATH}/confirm`, 'self.change', {
    title: 'Second factor',
    whileFrozen: true,
    handle: async (call, deps) => {
      const code = field(call.form, 'code').replace(/\s/g, '');
      const enrollment = getEnrollment(call);
      const browser = { ...enrollment, knownDevice: call.viewer.knownDevice };
      const check = await limitCodes(deps, browser, () => switchOn(deps, enrollment, code));
      if (check.outcome === 'right') return <RecoveryCodes codes={check.user} />;
      const bad =
        check.outcome === 'too_many'
          ? explainLimit(check.minutes)
          : 'The code is wrong or too old. Look at your app, and try again.';
      return { go: FACTOR_PATH, bad };
    },
  }),
  postRoute(`${FACTOR_PATH}/off`, 'self.change', {
    title: 'Switch off the second factor',
    confirmation: {
      question: 'Without a passkey, your password alone is then enough to sign in.',
      button: 'Switch off',
      proof: 'step_up',
    },
    handle: async (call, deps) => {
      await switchOff(deps, getSelf(call), call.viewer.session);
      return { go: PROFILE, good: 'The second factor is off.' };
    },
  }),
  postRoute(PASSKEYS_PATH, 'self.change', {
    title: ADD_PASSKEY,
    confirmation: {
      question: 'A passkey signs you in without password and code, and is a second factor.',
      button: ADD_PASSKEY,
      proof: 'step_up',
    },
    handle: async (call, deps) => {
      const site = findSite(deps.publicUrl);
      if (site === null) return { go: PROFILE, bad: NO_PASSKEYS };
      const { user, account, session } = call.viewer;
      const request = { user_id: user.id, merchant: account.name, session };
      const options = await offerPasskey(deps, site, request);
      if (options === null) return { go: PROFILE, bad: TOO_MANY };
      return (
        <>
          <PageHead title={ADD_PASSKEY} />
          <section class="panel narrow">
            <form method="post" action={call.href(`${PASSKEYS_PATH}/confirm`)} class="form">
              <input type="hidden" name="csrf" value={call.viewer.csrf} />
              <Field
                label="Name"
                name="name"
                value="Passkey"
                hint="Such as the device that it is on."
                maxLength={50}
                required
                autofocus
              />
              <noscript>Passkeys need JavaScript.</noscript>
              <PasskeyButton label="Create passkey" options={options} />
            </form>
            <a href={call.href(PROFILE)}>Back without doing it</a>
          </section>
        </>
      );
    },
  }),
  postRoute(`${PASSKEYS_PATH}/confirm`, 'self.change', {
    title: ADD_PASSKEY,
    handle: async (call, deps) => {
      const site = findSite(deps.publicUrl);
      const { user, session } = call.viewer;
      const message = field(call.form, 'passkey');
      const passkey = { user_id: user.id, session, name: field(call.form, 'name'), message };
      const codes = site && (await addPasskey(deps, site, passkey));
      if (codes === null) {
        const bad = 'No passkey was added: it took too long, or was not accepted. Try again.';
        return { go: PROFILE, bad };
      }
      if (codes.length > 0) return <RecoveryCodes codes={codes} />;
      return { go: PROFILE, good: 'The passkey is added.' };
    },
  }),
  postRoute(`${PASSKEYS_PATH}/remove`, 'self.change', {
    title: 'Remove a passkey',
    whileFrozen: true,
    confirmation: {
      question:
        'It no longer signs you in, and your other sessions end. Without another second factor, ' +
        'your password alone is then enough.',
      button: 'Remove',
      proof: 'step_up',
    },
    handle: async (call, deps) => {
      const passkey = { id: field(call.form, 'id'), keep: call.viewer.session };
      if (!(await removePasskey(deps, getSelf(call), passkey))) return 'not_found';
      return { go: PROFILE, good: 'The passkey is removed.' };
    },
  }),
];

function SecondFactorPanel({ member }: { member: TeamMember }) {
  const { has_second_factor: isOn, has_app: hasApp } = member;
  return (
    <Panel title="Second factor">
      <p>
        <Badge tone={isOn ? 'good' : 'note'}>{isOn ? 'On' : 'Off'}</Badge>{' '}
        {isOn
          ? `${hasApp ? 'By your app' : 'By your passkeys, without an app'}. ${member.recovery_codes} recovery codes are left.`
          : 'With a second factor, a stolen password is not enough to sign in.'}
      </p>
      <PostForm
        path={`${FACTOR_PATH}${hasApp ? '/off' : ''}`}
        button={hasApp ? 'Switch off' : 'Set up'}
        tone={hasApp ? 'danger' : 'plain'}
      />
    </Panel>
  );
}

function getEnrollment({ viewer }: Call) {
  return { user_id: viewer.user.id, session: viewer.session };
}

function RecoveryCodes({ codes }: { codes: readonly string[] }) {
  const call = useCall();
  return (
    <>
      <PageHead title="Your recovery codes" />
      <Note tone="note">
        Store these apart from your devices: each replaces your second factor once. They are shown
        only once.
      </Note>
      <Panel>
        <pre>{codes.join('\n')}</pre>
        <p>
          <a href={call.href(PROFILE)}>I have kept them</a>
        </p>
      </Panel>
    </>
  );
}

interface PasskeysPanelProps {
  member: TeamMember;
  publicUrl: string;
}

function PasskeysPanel({ member: { passkeys }, publicUrl }: PasskeysPanelProps) {
  const isFull = passkeys.length >= PASSKEYS_MAX;
  const fault = findSite(publicUrl) === null ? NO_PASSKEYS : isFull ? TOO_MANY : undefined;
  return (
    <Panel title="Passkeys">
      <Table
        label="Passkeys"
        rows={passkeys}
        columns={[
          ['Name', ({ name }) => name],
          ['Added', ({ created_at }) => <When at={created_at} />],
          ['Last used', ({ last_used_at }) => <When at={last_used_at} />],
          [
            'Act',
            ({ id }) => (
              <PostForm
                path={`${PASSKEYS_PATH}/remove`}
                class="inline"
                hidden={{ id }}
                button="Remove"
                tone="danger"
              />
            ),
          ],
        ]}
        none="There are no passkeys yet."
      />
      {fault === undefined ? (
        <PostForm path={PASSKEYS_PATH} button={ADD_PASSKEY} tone="plain" />
      ) : (
        <p class="muted">{fault}</p>
      )}
    </Panel>
  );
}

const TOO_MANY = `You have ${PASSKEYS_MAX} passkeys, the most that one user can have.`;
