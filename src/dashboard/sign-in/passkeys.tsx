import type Router from '@koa/router';
import type { RouterContext } from '@koa/router';
import { isForeignPost } from '../../pages/security';
import type { TeamMember } from '../../service/merchants/team/members';
import {
  addPasskey,
  askForPasskey,
  findSite,
  offerPasskey,
  PASSKEYS_MAX,
  removePasskey,
} from '../../service/merchants/team/passkeys';
import { type Dashboard, HOME_PATH } from '../frame/context';
import { Field } from '../frame/fields';
import { field, readOwnForm, redirect } from '../frame/form';
import { explainLimit, sendNotice } from '../frame/notices';
import { PageHead, Panel, PostForm, Table, When } from '../frame/parts';
import {
  NO_PASSKEYS,
  PASSKEY_SIGN_IN_PATH,
  PasskeyButton,
  readPasskey,
  WRONG_PASSKEY,
} from '../frame/passkeys';
import { type Answer, type Call, getSelf, type PageDeps, type Route } from '../frame/route';
import { getNextPath, openSession } from './open-session';
import { RecoveryCodes } from './second-factor';
import { showSignIn } from './sign-in';

/** Passkey stands for password and second factor. */
export function addPasskeySignIn(router: Router, dashboard: Dashboard): void {
  router.post(`${PASSKEY_SIGN_IN_PATH}/challenge`, (ctx) => sendChallenge(ctx, dashboard));
  router.post(PASSKEY_SIGN_IN_PATH, (ctx) => signIn(ctx, dashboard));
}

async function sendChallenge(ctx: RouterContext, dashboard: Dashboard): Promise<void> {
  const site = findSite(dashboard.publicUrl);
  if (isForeignPost(ctx, dashboard.publicUrl)) return sendNotice(ctx, dashboard, 'foreign');
  if (site === null) return sendNotice(ctx, dashboard, 'not_found');
  const signedDevice = dashboard.device.signedHash(ctx);
  const browser = dashboard.device.bind(ctx);
  const address = dashboard.clientAddress(ctx.req);
  const ask = () => askForPasskey(dashboard, site, { browser, signedDevice, address });
  const request = await dashboard.limitSignIns(signedDevice, ask);
  const { minutes, options } = request ?? { minutes: 1, options: undefined };
  if (minutes > 0) {
    ctx.status = 429;
    ctx.set('Retry-After', String(minutes * 60));
  }
  ctx.body = options ?? explainLimit(minutes);
}

async function signIn(ctx: RouterContext, dashboard: Dashboard): Promise<void> {
  const form = await readOwnForm(ctx, dashboard.publicUrl, null);
  if (typeof form === 'string') return sendNotice(ctx, dashboard, form);
  const next = getNextPath(form);
  const used = await readPasskey(ctx, dashboard, form);
  const isSignedIn =
    used !== null &&
    (await openSession(ctx, dashboard, used.user, {
      ...{ stage: 'whole', path: next ?? HOME_PATH },
      proof: { by: 'passkey', passkey: used.passkey },
    }));
  if (!isSignedIn) showSignIn(ctx, dashboard, { next, fault: WRONG_PASSKEY, status: 401 });
}

const PROFILE = '/profile';
const PATH = `${PROFILE}/passkeys`;
const TITLE = 'Add a passkey';

const selfRoute = { act: 'self.change', method: 'post' } as const;

export const PASSKEY_ROUTES: readonly Route[] = [
  {
    ...selfRoute,
    path: PATH,
    title: TITLE,
    confirmation: {
      question: 'A passkey signs you in without password and code, and is a second factor.',
      button: TITLE,
      proof: 'step_up',
    },
    handle: offer,
  },
  { ...selfRoute, path: `${PATH}/confirm`, title: TITLE, handle: confirm },
  {
    ...selfRoute,
    path: `${PATH}/remove`,
    title: 'Remove a passkey',
    whileFrozen: true,
    confirmation: {
      question:
        'It no longer signs you in, and your other sessions end. Without another second factor, ' +
        'your password alone is then enough.',
      button: 'Remove',
      proof: 'step_up',
    },
    handle: remove,
  },
];

interface PasskeysPanelProps {
  call: Call;
  member: TeamMember;
  publicUrl: string;
}

export function PasskeysPanel({ call, member: { passkeys }, publicUrl }: PasskeysPanelProps) {
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
              {...{ call, path: `${PATH}/remove`, class: 'inline', hidden: { id } }}
              button="Remove"
              tone="danger"
            />,
          ],
        }))}
        none="There are no passkeys yet."
      />
      <AddPasskey call={call} count={passkeys.length} publicUrl={publicUrl} />
    </Panel>
  );
}

interface AddPasskeyProps extends Omit<PasskeysPanelProps, 'member'> {
  count: number;
}

function AddPasskey({ call, count, publicUrl }: AddPasskeyProps) {
  if (findSite(publicUrl) === null) return <p class="muted">{NO_PASSKEYS}</p>;
  if (count >= PASSKEYS_MAX) return <p class="muted">{TOO_MANY}</p>;
  return <PostForm call={call} path={PATH} button={TITLE} tone="plain" />;
}

const TOO_MANY = `You have ${PASSKEYS_MAX} passkeys, the most that one user can have.`;

async function offer(call: Call, deps: PageDeps): Promise<Answer> {
  const site = findSite(deps.publicUrl);
  if (site === null) return redirect(call, PROFILE, 'bad', NO_PASSKEYS);
  const { user, account, session } = call.viewer;
  const request = { user_id: user.id, merchant: account.name, session };
  const options = await offerPasskey(deps, site, request);
  if (options === null) return redirect(call, PROFILE, 'bad', TOO_MANY);
  return (
    <>
      <PageHead title={TITLE} />
      <section class="panel narrow">
        <form method="post" action={call.href(`${PATH}/confirm`)} class="form">
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
}

async function confirm(call: Call, deps: PageDeps): Promise<Answer> {
  const site = findSite(deps.publicUrl);
  const { user, session } = call.viewer;
  const message = field(call.form, 'passkey');
  const passkey = { user_id: user.id, session, name: field(call.form, 'name'), message };
  const codes = site && (await addPasskey(deps, site, passkey));
  if (codes === null) {
    const text = 'No passkey was added: it took too long, or was not accepted. Try again.';
    return redirect(call, PROFILE, 'bad', text);
  }
  if (codes.length > 0) return <RecoveryCodes call={call} codes={codes} />;
  return redirect(call, PROFILE, 'good', 'The passkey is added.');
}

async function remove(call: Call, deps: PageDeps): Promise<Answer> {
  const passkey = { id: field(call.form, 'id'), keep: call.viewer.session };
  if (!(await removePasskey(deps, getSelf(call), passkey))) return 'not_found';
  return redirect(call, PROFILE, 'good', 'The passkey is removed.');
}
