import { offer, offered, switchOff, switchOn } from '../merchants/second-factor';
import { QrCode } from '../pages/qr';
import type { UserDocument } from '../store/users';
import type { DashboardDeps } from './deps';
import { Field } from './fields';
import { field } from './form';
import { Badge, Copyable, Note, PageHead, Panel, PostForm } from './parts';
import type { Answer, Call, Route } from './route';

const PROFILE = '/profile';
const PATH = `${PROFILE}/second-factor`;

const own = { act: 'self.change' } as const;

export const SECOND_FACTOR_ROUTES: readonly Route[] = [
  {
    ...own,
    method: 'post',
    path: PATH,
    title: 'Set up a second factor',
    whileFrozen: true,
    ask: {
      question: 'You need an app for one-time codes at hand.',
      button: 'Set up',
      password: true,
    },
    handle: setUp,
  },
  { ...own, method: 'get', path: PATH, title: 'Second factor', handle: scan },
  {
    ...own,
    method: 'post',
    path: `${PATH}/confirm`,
    title: 'Second factor',
    whileFrozen: true,
    handle: confirm,
  },
  {
    ...own,
    method: 'post',
    path: `${PATH}/off`,
    title: 'Switch off the second factor',
    ask: {
      question: 'Your password alone is then enough to sign in.',
      button: 'Switch off',
      password: true,
    },
    handle: dropFactor,
  },
];

/** State of the second factor on the profile. */
export function SecondFactorPanel({ call, user }: { call: Call; user: UserDocument }) {
  const isOn = user.totp !== null;
  return (
    <Panel title="Second factor">
      <p>
        <Badge tone={isOn ? 'good' : 'note'}>{isOn ? 'On' : 'Off'}</Badge>{' '}
        {isOn
          ? `${user.recovery_hashes.length} recovery codes are left.`
          : 'With a second factor, a stolen password is not enough to sign in.'}
      </p>
      <PostForm
        viewer={call.viewer}
        action={call.href(`${PATH}${isOn ? '/off' : ''}`)}
        button={isOn ? 'Switch off' : 'Set up'}
        tone={isOn ? 'danger' : 'plain'}
      />
    </Panel>
  );
}

async function setUp(call: Call, deps: DashboardDeps): Promise<Answer> {
  await offer(deps, { _id: call.viewer.user.id });
  return { go: call.href(PATH) };
}

async function scan(call: Call, { stores, sealer }: DashboardDeps): Promise<Answer> {
  const user = await stores.users.get(call.viewer.user.id);
  const made = user === null ? null : await offered(sealer, user);
  if (made === null) return { go: call.href(PROFILE) };
  return {
    page: (
      <>
        <PageHead title="Set up a second factor" />
        <Panel>
          <p>Scan this with your app, or type the secret, and give the code that it shows.</p>
          <QrCode text={made.uri} label="To be scanned with your app" />
          <Copyable label="secret" text={made.secret} />
          <PostForm viewer={call.viewer} action={call.href(`${PATH}/confirm`)} button="Switch on">
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
    ),
  };
}

async function confirm(call: Call, deps: DashboardDeps): Promise<Answer> {
  const user = await deps.stores.users.get(call.viewer.user.id);
  const code = field(call.form, 'code').replace(/\s/g, '');
  const codes = user && (await switchOn({ ...deps, audit: call.audit }, user, code));
  if (!codes) {
    const text = 'The code is wrong or too old. Look at your app, and try again.';
    return { go: call.href(PATH), flash: { tone: 'bad', text } };
  }
  return {
    page: (
      <>
        <PageHead title="Your recovery codes" />
        <Note tone="note">
          Keep these where your app is not: each signs you in once without it. They are shown this
          once.
        </Note>
        <Panel>
          <pre>{codes.join('\n')}</pre>
          <p>
            <a href={call.href(PROFILE)}>I have kept them</a>
          </p>
        </Panel>
      </>
    ),
  };
}

async function dropFactor(call: Call, deps: DashboardDeps): Promise<Answer> {
  const person = { _id: call.viewer.user.id, account_id: call.scope.account_id };
  await switchOff({ ...deps, audit: call.audit }, person);
  return { go: call.href(PROFILE), flash: { tone: 'good', text: 'The second factor is off.' } };
}
