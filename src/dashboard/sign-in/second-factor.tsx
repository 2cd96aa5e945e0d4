import { QrCode } from '../../pages/qr';
import type { TeamMember } from '../../service/team/members';
import { getOffer, offerSecret, switchOff, switchOn } from '../../service/team/second-factor';
import { Field } from '../frame/fields';
import { field, redirect } from '../frame/form';
import { Badge, Copyable, Note, PageHead, Panel, PostForm } from '../frame/parts';
import type { Answer, Call, PageDeps, Route } from '../frame/route';

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
      password: true,
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
      question: 'Your password alone is then enough to sign in.',
      button: 'Switch off',
      password: true,
    },
    handle: dropFactor,
  },
];

export function SecondFactorPanel({ call, member }: { call: Call; member: TeamMember }) {
  const isOn = member.has_second_factor;
  return (
    <Panel title="Second factor">
      <p>
        <Badge tone={isOn ? 'good' : 'note'}>{isOn ? 'On' : 'Off'}</Badge>{' '}
        {isOn
          ? `${member.recovery_codes} recovery codes are left.`
          : 'With a second factor, a stolen password is not enough to sign in.'}
      </p>
      <PostForm
        call={call}
        path={`${PATH}${isOn ? '/off' : ''}`}
        button={isOn ? 'Switch off' : 'Set up'}
        tone={isOn ? 'danger' : 'plain'}
      />
    </Panel>
  );
}

async function setUp(call: Call, deps: PageDeps): Promise<Answer> {
  await offerSecret(deps, { _id: call.viewer.user.id });
  return { go: call.href(PATH) };
}

async function scan(call: Call, deps: PageDeps): Promise<Answer> {
  const enrollment = await getOffer(deps, call.viewer.user.id);
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
  const codes = await switchOn(deps, call.viewer.user.id, code);
  if (codes === null) {
    const text = 'The code is wrong or too old. Look at your app, and try again.';
    return redirect(call, PATH, 'bad', text);
  }
  return (
    <>
      <PageHead title="Your recovery codes" />
      <Note tone="note">
        Store these apart from your app: each signs you in once without it. They are shown only
        once.
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
  const member = { _id: call.viewer.user.id, account_id: call.scope.account_id };
  await switchOff(deps, member);
  return redirect(call, PROFILE, 'good', 'The second factor is off.');
}
