import { QrCode } from '../../pages/qr';
import type { TeamMember } from '../../service/merchants/team/members';
import {
  getOffer,
  offerSecret,
  switchOff,
  switchOn,
} from '../../service/merchants/team/second-factor';
import { Field } from '../frame/fields';
import { field, redirect } from '../frame/form';
import { Badge, Copyable, Note, PageHead, Panel, PostForm } from '../frame/parts';
import { type Answer, type Call, getSelf, type PageDeps, type Route } from '../frame/route';

const PROFILE = '/profile';
const PATH = `${PROFILE}/second-factor`;

const selfRoute = { act: 'self.change' } as const;

export const SECOND_FACTOR_ROUTES: readonly Route[] = [
  {
    ...selfRoute,
    method: 'post',
    path: PATH,
    title: 'Set up a second factor',
    whileFrozen: true,
    confirmation: {
      question: 'You need an app for one-time codes.',
      button: 'Set up',
      proof: 'step_up',
    },
    handle: setUp,
  },
  { ...selfRoute, method: 'get', path: PATH, title: 'Second factor', handle: scan },
  {
    ...selfRoute,
    method: 'post',
    path: `${PATH}/confirm`,
    title: 'Second factor',
    whileFrozen: true,
    handle: confirm,
  },
  {
    ...selfRoute,
    method: 'post',
    path: `${PATH}/off`,
    title: 'Switch off the second factor',
    confirmation: {
      question: 'Without a passkey, your password alone is then enough to sign in.',
      button: 'Switch off',
      proof: 'step_up',
    },
    handle: dropFactor,
  },
];

export function SecondFactorPanel({ call, member }: { call: Call; member: TeamMember }) {
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
        call={call}
        path={`${PATH}${hasApp ? '/off' : ''}`}
        button={hasApp ? 'Switch off' : 'Set up'}
        tone={hasApp ? 'danger' : 'plain'}
      />
    </Panel>
  );
}

async function setUp(call: Call, deps: PageDeps): Promise<Answer> {
  await offerSecret(deps, getEnrollment(call));
  return { go: call.href(PATH) };
}

function getEnrollment({ viewer }: Call) {
  return { user_id: viewer.user.id, session: viewer.session };
}

async function scan(call: Call, deps: PageDeps): Promise<Answer> {
  const enrollment = await getOffer(deps, getEnrollment(call));
  if (enrollment === null) return { go: call.href(PROFILE) };
  return (
    <>
      <PageHead title="Set up a second factor" />
      <Panel>
        <p>Scan this with your app, or type the secret, and enter the code that it shows.</p>
        <QrCode text={enrollment.uri} label="To be scanned with your app" />
        <Copyable label="secret" text={enrollment.secret} />
        <PostForm call={call} path={`${PATH}/confirm`} button="Switch on">
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
}

async function confirm(call: Call, deps: PageDeps): Promise<Answer> {
  const code = field(call.form, 'code').replace(/\s/g, '');
  const { user, session: keep } = call.viewer;
  const codes = await switchOn(deps, user.id, { code, keep });
  if (codes === null) {
    const text = 'The code is wrong or too old. Look at your app, and try again.';
    return redirect(call, PATH, 'bad', text);
  }
  return <RecoveryCodes call={call} codes={codes} />;
}

export function RecoveryCodes({ call, codes }: { call: Call; codes: readonly string[] }) {
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

async function dropFactor(call: Call, deps: PageDeps): Promise<Answer> {
  await switchOff(deps, getSelf(call), call.viewer.session);
  return redirect(call, PROFILE, 'good', 'The second factor is off.');
}
