import { randomInt, randomUUID } from 'node:crypto';
import { ROUTES } from '../../src/dashboard/dashboard';
import type { Route } from '../../src/dashboard/frame/route';
import { mayAct, ROLES, type Role } from '../../src/domain/merchants/dashboard-role';
import { auditBy } from '../../src/store/audit';
import type { CallbackDocument } from '../../src/store/callbacks';
import type { EndpointDocument } from '../../src/store/endpoints';
import { makeKey } from '../../src/store/keys';
import type { PaymentDocument } from '../../src/store/payments';
import type { UserDocument } from '../../src/store/users';
import {
  addSecondFactor,
  fetchPage,
  openUser,
  openVisitor,
  PASSWORD,
  type Visitor,
  visitor,
} from '../support/dashboard';
import { eventually } from '../support/http';
import { paymentAt } from '../support/list-rows';
import { openKey, useService } from '../support/service';
import { storeResources } from '../support/stored-resources';

// Each forged request is compared with a copy of the whole database.
const service = useService({ alone: true, worker: false });

interface Team {
  account_id: string;
  users: Record<Role, UserDocument>;
  browsers: Record<Role, Visitor>;
  /** Ids of this account, by the first part of the paths that take them. */
  ids: Readonly<Record<string, string>>;
}

let ours: Team;
let theirs: Team;

beforeAll(async () => {
  ours = await openTeam();
  theirs = await openTeam();
});

async function openTeam(): Promise<Team> {
  const { stores } = service;
  const { account_id } = await service.account({ livemode: true });
  await stores.accounts.setCrypto(account_id, true);
  const open = (role: Role) => openUser(stores, account_id, role);
  const users = await forEachRole(open);
  const browsers = await forEachRole((role) => openVisitor(service, users[role]));
  const [key] = await stores.keys.forAccount(account_id);
  const stored = await storeResources(service, { account_id, livemode: true });
  await stores.accounts.setLimit(account_id, `refund_step_up.${stored.currency}`, 0);
  const ids = {
    'api-keys': key?._id ?? '',
    team: users.read_only._id,
    ...{ ...stored.ids, webhooks: stored.ids.events },
  };
  return { account_id, users, browsers, ids };
}

async function forEachRole<T>(open: (role: Role) => Promise<T>): Promise<Record<Role, T>> {
  const opened = await Promise.all(ROLES.map(async (role) => [role, await open(role)] as const));
  return Object.fromEntries(opened) as Record<Role, T>;
}

/** Path of a route in an environment, with the ids of an account in it. */
function buildPath({ path }: Route, env: string, { ids }: Pick<Team, 'ids'>): string {
  const [, first = '', second = ''] = path.split('/');
  const id = ids[first] ?? ids[`${first}/${second}`] ?? randomUUID();
  return `/dashboard/${env}${path.replaceAll(/:\w+/g, id)}`;
}

const named = ROUTES.map(
  (route) => [`${route.method.toUpperCase()} ${route.path}`, route] as const,
);
const acts = named.filter(([, { method }]) => method === 'post');
const withIds = named.filter(([, { path }]) => path.includes(':'));

test('the table gives each method and path once, and every POST an act that changes', () => {
  expect(new Set(named.map(([name]) => name)).size).toBe(named.length);
  for (const [, { act }] of acts) expect(act).not.toBe('view');
});

test('the table requires the password, or a step-up, of these acts', () => {
  const proofs = acts.flatMap(([name, { confirmation: { proof, liveOnly } = {} }]) => {
    if (proof === undefined) return [];
    const kind = typeof proof === 'function' ? 'by amount' : proof;
    return [`${name}: ${kind}${liveOnly ? ' on live' : ''}`];
  });
  expect(proofs.toSorted()).toEqual([
    'POST /api-keys: step_up on live',
    'POST /brand/logo/remove: step_up on live',
    'POST /brand/logo: step_up on live',
    'POST /brand: step_up on live',
    'POST /crypto/settle: step_up',
    'POST /crypto/wallets: step_up',
    'POST /disputes/:id/accept: by amount',
    'POST /payments/:id/refund: by amount',
    'POST /profile/passkeys/remove: step_up',
    'POST /profile/passkeys: step_up',
    'POST /profile/password: password',
    'POST /profile/second-factor/off: step_up',
    'POST /profile/second-factor: step_up',
    'POST /team/:id/remove: step_up',
    'POST /team/:id/role: step_up',
    'POST /team/invitations: step_up',
    'POST /webhooks/endpoint: step_up on live',
    'POST /webhooks/endpoints/:id/delete: step_up',
    'POST /webhooks/endpoints/:id/roll: step_up',
    'POST /webhooks/endpoints/:id/save: step_up on live',
    'POST /webhooks/endpoints/:id/secret: password',
    'POST /webhooks/endpoints/:id/status: step_up on live',
    'POST /webhooks/endpoints/new: step_up on live',
    'POST /webhooks/roll: step_up',
    'POST /webhooks/secret: password',
  ]);
});

/** Fields without which no confirmation is due. */
const ENDPOINT = {
  url: 'https://1.1.1.1/hook',
  events: 'payment.settled',
  explanation: 'It came.',
};

/** Sends a route's request as a browser does that has confirmed it. */
const send = (browser: Visitor, { method }: Route, path: string, form?: Record<string, string>) =>
  method === 'get' ? browser.get(path) : browser.confirm(path, form);

describe.each(named)('%s', (_name, route) => {
  test('refuses a visitor without a session or with a made-up one', async () => {
    const path = buildPath(route, 'sandbox', ours);
    for (const Cookie of ['', `dashboard=${'a'.repeat(43)}`, 'dashboard=../../etc', 'dashboard=']) {
      const init = { method: route.method, headers: { Cookie }, redirect: 'manual' } as const;
      const { status, headers } = await fetch(`${service.url}${path}`, init);
      expect([status, headers.get('location')?.split('?')[0]]).toEqual([303, '/dashboard/sign-in']);
    }
  });

  test('admits a role only where the table of roles does', async () => {
    const path = buildPath(route, 'live', ours);
    const before = await everything();
    for (const role of ROLES.filter((each) => !mayAct(each, route.act))) {
      const { status, html } = await send(ours.browsers[role], route, path);
      expect([role, status]).toEqual([role, 403]);
      expect(html).toContain('Your role does not allow this');
    }
    expect(await everything()).toEqual(before);
  });
});

describe.each(acts)('%s', (_name, route) => {
  const path = () => buildPath(route, 'live', ours);

  test('a form without its token or of another site changes nothing, whatever it contains', async () => {
    const before = await everything();
    const { secret, csrf } = ours.browsers.owner;
    const forged: [csrf: string, headers?: Record<string, string>][] = [
      [''],
      [theirs.browsers.owner.csrf],
      [csrf, { 'Sec-Fetch-Site': 'cross-site' }],
      [csrf, { Origin: 'https://evil.example' }],
    ];
    for (const [token, headers] of forged) {
      const { status } = await fetchPage(service.url, 'POST', path(), {
        headers: { Cookie: `dashboard=${secret}`, ...headers },
        form: { csrf: token, confirmed: 'yes', password: PASSWORD },
      });
      expect([token, headers, status]).toEqual([token, headers, 403]);
    }
    expect(await everything()).toEqual(before);
  });

  test('an act with a confirmation page is not done before the confirmation', async () => {
    if (route.confirmation === undefined) return;
    const before = await everything();
    const confirmation = await ours.browsers.owner.post(path(), ENDPOINT);
    expect(confirmation.status).toBe(200);
    const { button } = route.confirmation;
    const name = typeof button === 'string' ? button : button(new URLSearchParams(ENDPOINT));
    expect(confirmation.html).toContain(`>${name}</button>`);
    if (route.confirmation.proof) {
      for (const password of ['', 'wrong']) {
        const refused = await ours.browsers.owner.confirm(path(), { ...ENDPOINT, password });
        expect(refused.status).toBe(403);
        expect(refused.html).toContain('The password is wrong.');
      }
      await service.collection('dashboard_throttles').deleteMany({});
    }
    expect(await everything()).toEqual(before);
  });

  test('a step-up also requires the code of a user with a second factor', async () => {
    const { proof } = route.confirmation ?? {};
    if (proof !== 'step_up' && typeof proof !== 'function') return;
    const owner = await openUser(service.stores, ours.account_id);
    const { code } = await addSecondFactor(service, owner);
    const browser = await openVisitor(service, owner);
    const before = await everything();
    expect((await browser.post(path(), ENDPOINT)).html).toContain('name="code"');
    for (const [code, fault] of [
      ['', 'Enter a code too.'],
      ['12345', 'The code is wrong'],
    ] as const) {
      const refused = await browser.confirm(path(), { ...ENDPOINT, code });
      expect(refused).toMatchObject({ status: 403, html: expect.stringContaining(fault) });
    }
    const wrong = { ...ENDPOINT, code: code(), password: 'wrong' };
    const refused = await browser.confirm(path(), wrong);
    expect(refused.html).toContain('The password is wrong.');
    await service.collection('dashboard_throttles').deleteMany({});
    expect(await everything()).toEqual(before);
  });
});

test.each(withIds)(
  '%s finds no ID of another account or of the other environment',
  async (...row) => {
    const [, route] = row;
    const before = await everything();
    const paths = [buildPath(route, 'live', theirs)];
    // People belong to both environments.
    if (!route.path.startsWith('/team/')) paths.push(buildPath(route, 'sandbox', ours));
    for (const path of paths) {
      const { status } = await send(ours.browsers.owner, route, path, { role: 'owner' });
      expect([path, status]).toEqual([path, 404]);
    }
    expect(await everything()).toEqual(before);
  },
);

test('an account without crypto has none of the crypto pages', async () => {
  const { stores } = service;
  const pages = ROUTES.filter(({ crypto }) => crypto);
  expect(pages.length).toBeGreaterThan(8);
  const { owner } = theirs.browsers;
  expect((await owner.get('/dashboard/live/crypto')).location).toBe(
    '/dashboard/live/crypto/payments',
  );
  await stores.accounts.setCrypto(theirs.account_id, false);
  const before = await everything();
  for (const route of pages) {
    const path = buildPath(route, 'live', theirs);
    const answer = await send(owner, route, path);
    expect(answer.status).toBe(404);
    expect(answer.html).not.toContain('href="/dashboard/live/crypto"');
  }
  expect(await everything()).toEqual(before);
  await stores.accounts.setCrypto(theirs.account_id, true);
});

test('a frozen account can be read and made safer; every other act is refused with the reason', async () => {
  const { stores, mongo } = service;
  const { account_id, browsers, ids } = theirs;
  const { owner } = browsers;
  const isFrozen = async () => (await stores.accounts.get(account_id))?.frozen !== undefined;
  const at = new Date().toISOString();
  await mongo.withSession((session) =>
    stores.accounts.freeze(account_id, { at, reason: 'Ticket 42: secret' }, session),
  );
  await eventually('the freeze to be known', isFrozen);
  const open = acts.filter(([, { whileFrozen }]) => whileFrozen).map(([name]) => name);
  expect(open.toSorted()).toEqual([
    'POST /api-keys/:id/revoke',
    'POST /profile/passkeys/remove',
    'POST /profile/password',
    'POST /profile/second-factor',
    'POST /profile/second-factor/confirm',
    'POST /profile/sessions/end',
    'POST /profile/sessions/end-others',
    'POST /profile/sign-out-everywhere',
    'POST /team/:id/remove',
    'POST /team/invitations/withdraw',
    'POST /webhooks/deliveries/:id/send-again',
    'POST /webhooks/send-failed',
  ]);
  const before = await everything();
  for (const [name, route] of acts) {
    if (open.includes(name)) continue;
    const { status, html } = await owner.confirm(buildPath(route, 'live', theirs));
    expect([name, status, html.includes('<h1>This account is frozen</h1>')]).toEqual([
      ...[name, 403, true],
    ]);
    expect(html).not.toContain('Ticket 42');
  }
  expect(await everything()).toEqual(before);
  const { status, html } = await owner.get('/dashboard/live/payments');
  expect([status, html.includes('This account is frozen: nothing can be created')]).toEqual([
    200,
    true,
  ]);
  const key = `/dashboard/live/api-keys/${ids['api-keys']}/revoke`;
  expect(await owner.confirm(key)).toMatchObject({ location: '/dashboard/live/api-keys' });
  const [revoked] = await stores.keys.forAccount(account_id);
  expect(revoked?.revoked_at).not.toBeNull();
  await mongo.withSession((session) => stores.accounts.unfreeze(account_id, session));
  await eventually('the release to be known', async () => !(await isFrozen()));
});

test.each([
  ['live', '10.00', false],
  ['live', '10.01', true],
  ['live', 'ten', true],
  ['sandbox', '10.01', false],
])(
  'above a limit of EUR 10.00, a refund on %s of %s requires a step-up: %s',
  async (env, amount, isDue) => {
    const { account_id } = await service.account();
    await service.stores.accounts.setLimit(account_id, 'refund_step_up.EUR', 1_000);
    const owner = await openUser(service.stores, account_id);
    await addSecondFactor(service, owner);
    const at = new Date().toISOString();
    const fields = { account_id, livemode: env === 'live', currency: 'EUR', _id: randomUUID() };
    await service.db.collection<PaymentDocument>('payments').insertOne({
      ...{ ...paymentAt(randomInt(900_000), at), ...fields },
      token_hash: randomUUID(),
    });
    const browser = await openVisitor(service, owner);
    const path = `/dashboard/${env}/payments/${fields._id}/refund`;
    const { html } = await browser.post(path, { amount });
    expect([html.includes('name="password"'), html.includes('name="code"')]).toEqual([
      isDue,
      isDue,
    ]);
  },
);

test('where second factors are required, a user without one cannot act on live or on the team', async () => {
  const { stores } = service;
  const lacking = await openUser(stores, ours.account_id);
  const guarded = await openUser(stores, ours.account_id);
  const proof = await addSecondFactor(service, guarded);
  const [theirs, safe] = [await openVisitor(service, lacking), await openVisitor(service, guarded)];
  const before = await everything();
  await service.withApp({ config: { SECOND_FACTOR: 'required' } }, async (url) => {
    const browser = visitor(url, theirs.secret);
    const led = acts.filter(([, { act }]) => act !== 'self.change');
    for (const [name, route] of led) {
      const { location } = await browser.confirm(buildPath(route, 'live', ours));
      expect([name, location]).toEqual([name, '/dashboard/live/profile']);
    }
    expect((await browser.get('/dashboard/live/profile')).html).toContain('needs a second factor');
    const role = { role: 'owner' };
    const onTeam = await browser.confirm(`/dashboard/sandbox/team/${ours.ids['team']}/role`, role);
    expect(onTeam.location).toBe('/dashboard/sandbox/profile');
    const cancel = `/payments/${ours.ids['payments']}/cancel`;
    expect((await browser.post(`/dashboard/sandbox${cancel}`)).status).toBe(200);
    const { post, confirm } = visitor(url, safe.secret);
    expect((await post(`/dashboard/live${cancel}`)).status).toBe(200);
    expect(await everything()).toEqual(before);
    // A frozen account is made safer by a user with one.
    const at = new Date().toISOString();
    const { accounts } = stores;
    await service.mongo.withSession((session) =>
      accounts.freeze(ours.account_id, { at, reason: 'theft' }, session),
    );
    const isFrozen = async () => (await accounts.get(ours.account_id))?.frozen !== undefined;
    await eventually('the freeze to be known', isFrozen);
    const remove = `/dashboard/live/team/${lacking._id}/remove`;
    expect((await confirm(remove, { code: proof.code() })).location).toBe('/dashboard/live/team');
    expect(await stores.users.get(lacking._id)).toBeNull();
    await service.mongo.withSession((session) => accounts.unfreeze(ours.account_id, session));
    await eventually('the release to be known', async () => !(await isFrozen()));
  });
});

test('lists show no row of another account or environment', async () => {
  const sandbox = await openKey(service.stores, ours.account_id, false);
  const own = await ours.browsers.read_only.get('/dashboard/live/api-keys');
  expect(own.html).not.toContain(`…${sandbox.slice(-4)}`);
  const team = await ours.browsers.read_only.get('/dashboard/live/team');
  for (const { email } of Object.values(theirs.users)) expect(team.html).not.toContain(email);
  for (const { email } of Object.values(ours.users)) expect(team.html).toContain(email);
});

test('every answer forbids frames, inline scripts, storing and type sniffing', async () => {
  const requests = [
    ...ROUTES.map((route) => [route.method, buildPath(route, 'live', ours)] as const),
    ...(['/dashboard/sign-in', '/dashboard/nowhere'] as const).map(
      (path) => ['get', path] as const,
    ),
  ];
  for (const [method, path] of requests) {
    for (const Cookie of ['', `dashboard=${ours.browsers.owner.secret}`]) {
      const init = { method, headers: { Cookie }, redirect: 'manual' } as const;
      const { headers } = await fetch(`${service.url}${path}`, init);
      const policy = headers.get('content-security-policy') ?? '';
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).toContain("form-action 'self';");
      expect(policy).not.toContain('unsafe-');
      expect({ path, ...Object.fromEntries(headers) }).toMatchObject({
        ...{ path, 'x-frame-options': 'DENY', 'cache-control': 'no-store' },
        ...{ 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' },
      });
    }
  }
});

test('a script in a name or an e-mail is shown as text', async () => {
  const script = '<script>alert(1)</script>';
  const accounts = service.collection<{ _id: string }>('accounts');
  await accounts.updateOne({ _id: theirs.account_id }, { $set: { name: script } });
  const { html } = await theirs.browsers.owner.get('/dashboard/live/getting-started');
  expect(html).not.toContain(script);
  expect(html).toContain('&lt;script>alert(1)');
  const typed = new URLSearchParams({ email: `"${script}`, password: 'x' });
  const answer = await fetch(`${service.url}/dashboard/sign-in`, { method: 'POST', body: typed });
  expect(await answer.text()).not.toContain(script);
});

test('a script in a report of a bank, chain or receiver is shown as text', async () => {
  const script = '<script>alert(2)</script>';
  const db = service.db;
  const { ids, browsers, account_id } = theirs;
  const at = new Date().toISOString();
  const put = (collection: string, id: string, $set: object) =>
    db.collection<{ _id: string }>(collection).updateOne({ _id: id }, { $set });
  const failure = { code: script, message: script };
  const said = { failure, bank_reference: script, attention: script };
  const metadata = JSON.stringify({ note: script });
  const { payments = '', refunds = '', payouts = '', webhooks = '' } = ids;
  await put('payments', payments, { ...said, reference: script, metadata });
  await put('refunds', refunds, { ...said, reason: script });
  await put('payouts', payouts, { ...said, reference: script, metadata });
  await put('crypto_payments', ids['crypto/payments'] ?? '', { reference: script, metadata });
  await put('crypto_settlements', ids['crypto/settlements'] ?? '', {
    ...said,
    wallet_address: script,
  });
  const attempt = {
    ...{ run: 0, attempt: 1, at, url: script, status_code: 500, error: script },
    ...{ duration_ms: 1, response_excerpt: script, outcome: 'failed', next_attempt_at: null },
  };
  await put('events', webhooks, { body: script, attempts: [attempt] });
  const owner = { account_id, livemode: true };
  const found = await service.stores.payments.find(payments, account_id, true);
  await db.collection<CallbackDocument>('bank_callbacks').insertOne({
    ...{ _id: randomUUID(), connector: found?.connector ?? '', resource: 'payment' },
    ...{ resource_id: payments, name: 'failed', received_at: at, signalled_at: at },
    ...{ unapplied: script, parked: null },
    body: { callback_id: script, occurred_at: at, code: script, reason: script },
  });
  await db.collection<EndpointDocument>('webhook_endpoints').insertOne({
    ...{ ...owner, endpoint_id: `we_${randomUUID()}`, slot: 0, position: at, description: script },
    ...{ url: script, secrets: [], created_at: at, updated_at: at },
  });
  const shown = [
    ...['/payments', `/payments/${payments}`, '/refunds', `/refunds/${refunds}`, '/payouts'],
    ...[`/payouts/${payouts}`, `/webhooks/deliveries/${webhooks}`, '/webhooks', '/overview'],
    ...['/crypto/payments', `/crypto/payments/${ids['crypto/payments']}`],
    ...['/crypto/settlements', `/crypto/settlements/${ids['crypto/settlements']}`],
  ];
  for (const path of shown) {
    const { status, html } = await browsers.owner.get(`/dashboard/live${path}`);
    expect([path, status, html.includes(script)]).toEqual([path, 200, false]);
    expect([path, html.includes('&lt;script>alert(2)')]).toEqual([path, true]);
  }
});

test.each([
  '/dashboard/sign-in?next=https://evil.example',
  '/dashboard/sign-in?next=//evil.example/dashboard/live/team',
  '/dashboard/sign-in?next=/dashboard/live/team%0d%0aSet-Cookie:%20a=b',
  '/dashboard/sign-in?next=/dashboard/live/..%2f..%2fevil',
])('%s leads to our own pages only', async (path) => {
  const { html, headers } = await ours.browsers.owner.get(path);
  expect(html).not.toContain('name="next"');
  expect(headers.get('set-cookie')).toBeNull();
});

test('a line of the audit log leaves out what looks like a secret', async () => {
  const audit = auditBy(
    { stores: service.stores, now: () => new Date() },
    { via: 'command_line', system_user: 'mia', host: 'ops-1' },
  );
  const change = { account_id: ours.account_id, livemode: null, target: null } as const;
  for (const value of [makeKey(true), 'whsec_abc', '$argon2id$v=19$x', 'a'.repeat(43)]) {
    await audit({ ...change, act: 'brand.changed', after: { name: value, names: ['a', value] } });
    const [line] = await service.stores.auditLog.list({ account_id: ours.account_id, limit: 1 });
    const omitted = 'omitted: it looks like a secret';
    expect(line?.after).toEqual({ name: omitted, names: ['a', omitted] });
  }
});

/** All that acts could change, but for what merely looking writes. */
async function everything() {
  const db = service.db;
  const names = [
    ...['accounts', 'api_keys', 'users', 'dashboard_invitations', 'audit_log'],
    ...['crypto_payments', 'crypto_settlements', 'wallets'],
    ...['payments', 'refunds', 'payouts', 'events', 'webhook_endpoints', 'idempotency_records'],
  ];
  const read = async (name: string) => [name, await db.collection(name).find().toArray()] as const;
  return Object.fromEntries(await Promise.all(names.map(read)));
}
