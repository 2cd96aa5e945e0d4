import { QrCode } from '../../pages/layout';
import type { TeamMember } from '../../service/merchants/team/members';
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
import { limitCodes } from '../../service/merchants/team/sign-in';
import { Field } from '../frame/fields';
import { field, redirect } from '../frame/form';
import { explainLimit } from '../frame/layout';
import {
  Badge,
  Copyable,
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
const PATH = `${PROFILE}/second-factor`;
const PASSKEYS_PATH = `${PROFILE}/passkeys`;
const ADD_PASSKEY = 'Add a passkey';

export const SECOND_FACTOR_ROUTES: readonly Route[] = [
  postRoute(PATH, 'self.change', {
    title: 'Set up a second factor',
    whileFrozen: true,
    confirmation: {
      question: 'You need an app for one-time codes.',
      button: 'Set up',
      proof: 'step_up',
    },
    handle: async (call, deps) => {
      await offerSecret(deps, getEnrollment(call));
      return { go: call.href(PATH) };
    },
  }),
  {
    act: 'self.change',
    method: 'get',
    path: PATH,
    title: 'Second factor',
    handle: async (call, deps) => {
      const enrollment = await getOffer(deps, getEnrollment(call), call.viewer.account);
      if (enrollment === null) return { go: call.href(PROFILE) };
      return (
        <>
          <PageHead title="Set up a second factor" />
          <Panel>
            <p>Scan this with your app, or type the secret, and enter the code that it shows.</p>
            <QrCode text={enrollment.uri} label="To be scanned with your app" />
            <Copyable label="secret" text={enrollment.secret} />
            <PostForm path={`${PATH}/confirm`} button="Switch on">
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
  postRoute(`${PATH}/confirm`, 'self.change', {
    title: 'Second factor',
    whileFrozen: true,
    handle: async (call, deps) => {
      const code = field(call.form, 'code').replace(/\s/g, '');
      const enrollment = getEnrollment(call);
      const browser = { ...enrollment, knownDevice: call.viewer.knownDevice };
      const check = await limitCodes(deps, browser, () => switchOn(deps, enrollment, code));
      if (check.outcome === 'right') return <RecoveryCodes codes={check.user} />;
      const text =
        check.outcome === 'too_many'
          ? explainLimit(check.minutes)
          : 'The code is wrong or too old. Look at your app, and try again.';
      return redirect(call, PATH, 'bad', text);
    },
  }),
  postRoute(`${PATH}/off`, 'self.change', {
    title: 'Switch off the second factor',
    confirmation: {
      question: 'Without a passkey, your password alone is then enough to sign in.',
      button: 'Switch off',
      proof: 'step_up',
    },
    handle: async (call, deps) => {
      await switchOff(deps, getSelf(call), call.viewer.session);
      return redirect(call, PROFILE, 'good', 'The second factor is off.');
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
      if (site === null) return redirect(call, PROFILE, 'bad', NO_PASSKEYS);
      const { user, account, session } = call.viewer;
      const request = { user_id: user.id, merchant: account.name, session };
      const options = await offerPasskey(deps, site, request);
      if (options === null) return redirect(call, PROFILE, 'bad', TOO_MANY);
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
        const text = 'No passkey was added: it took too long, or was not accepted. Try again.';
        return redirect(call, PROFILE, 'bad', text);
      }
      if (codes.length > 0) return <RecoveryCodes codes={codes} />;
      return redirect(call, PROFILE, 'good', 'The passkey is added.');
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
      return redirect(call, PROFILE, 'good', 'The passkey is removed.');
    },
  }),
];

export function SecondFactorPanel({ member }: { member: TeamMember }) {
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
        path={`${PATH}${hasApp ? '/off' : ''}`}
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

export function PasskeysPanel({ member: { passkeys }, publicUrl }: PasskeysPanelProps) {
  return (
    <Panel title="Passkeys">
      <Table
        label="Passkeys"
        head={['Name', 'Added', 'Last used', 'Act']}
        rows={passkeys.map(({ id, name, created_at, last_used_at }) => ({
          key: id,
          cells: [
            name,
            <When key="added" at={created_at} />,
            <When key="used" at={last_used_at} />,
            <PostForm
              key="remove"
              {...{ path: `${PASSKEYS_PATH}/remove`, class: 'inline', hidden: { id } }}
              button="Remove"
              tone="danger"
            />,
          ],
        }))}
        none="There are no passkeys yet."
      />
      <AddPasskey count={passkeys.length} publicUrl={publicUrl} />
    </Panel>
  );
}

interface AddPasskeyProps extends Omit<PasskeysPanelProps, 'member'> {
  count: number;
}

function AddPasskey({ count, publicUrl }: AddPasskeyProps) {
  if (findSite(publicUrl) === null) return <p class="muted">{NO_PASSKEYS}</p>;
  if (count >= PASSKEYS_MAX) return <p class="muted">{TOO_MANY}</p>;
  return <PostForm path={PASSKEYS_PATH} button={ADD_PASSKEY} tone="plain" />;
}

const TOO_MANY = `You have ${PASSKEYS_MAX} passkeys, the most that one user can have.`;
