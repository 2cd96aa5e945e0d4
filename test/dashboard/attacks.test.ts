import { randomUUID } from 'node:crypto';
import { ROUTES } from '../../src/dashboard/dashboard';
import type { Route } from '../../src/dashboard/frame/route';
import { mayAct, ROLES, type Role } from '../../src/domain/merchants/dashboard-role';
import { auditBy } from '../../src/store/audit';
import type { CallbackDocument } from '../../src/store/callbacks';
import type { EndpointDocument } from '../../src/store/endpoints';
import { makeKey } from '../../src/store/keys';
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
import { eventually } from '../support/eventually';
import { openKey, useService } from '../support/service';
import { storeResources } from '../support/stored-resources';

// Each forged request is compared with a copy of the whole database.
const service = useService({ alone: true, worker: false });

interface Team {
  account_id: string;
  users: Record<Role, UserDocument>;
  browsers: Record<Role, Visitor>;
  /** An owner with a second factor. */
  guarded: { by: Visitor; code: () => string };
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
  const second = await open('owner');
  const { code } = await addSecondFactor(service, second);
  const guarded = { by: await openVisitor(service, second), code };
  const browsers = await forEachRole((role) => openVisitor(service, users[role]));
  const [key] = await stores.keys.forAccount(account_id);
  const stored = await storeResources(service, { account_id, livemode: true });
  await stores.accounts.setLimit(account_id, `refund_step_up.${stored.currency}`, 0);
  const ids = {
    'api-keys': key?._id ?? '',
    team: users.read_only._id,
    ...{ ...stored.ids, webhooks: stored.ids.events },
  };
  return { account_id, users, browsers, guarded, ids };
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
  const path = () => buildPath(route, 'live', ours);
  let before: object;

  beforeAll(async () => {
    before = await everything();
  });
  afterAll(async () => {
    await service.collection('dashboard_throttles').deleteMany({});
    expect(await everything()).toEqual(before);
  });

  test('refuses a visitor without a session or with a made-up one', async () => {
    const to = `${service.url}${buildPath(route, 'sandbox', ours)}`;
    for (const Cookie of ['', `dashboard=${'a'.repeat(43)}`, 'dashboard=../../etc', 'dashboard=']) {
      const init = { method: route.method, headers: { Cookie }, redirect: 'manual' } as const;
      const { status, headers } = await fetch(to, init);
      expect([status, headers.get('location')?.split('?')[0]]).toEqual([303, '/dashboard/sign-in']);
    }
  });

  test('changes nothing for a role that the table of roles does not admit', async () => {
    for (const role of ROLES.filter((each) => !mayAct(each, route.act))) {
      const { status, html } = await send(ours.browsers[role], route, path());
      expect([role, status]).toEqual([role, 403]);
      expect(html).toContain('Your role does not allow this');
    }
  });

  if (route.path.includes(':')) {
    test('finds no ID of another account or of the other environment', async () => {
      const paths = [buildPath(route, 'live', theirs)];
      // People belong to both environments.
      if (!route.path.startsWith('/team/')) paths.push(buildPath(route, 'sandbox', ours));
      for (const each of paths) {
        const { status } = await send(ours.browsers.owner, route, each, { role: 'owner' });
        expect([each, status]).toEqual([each, 404]);
      }
    });
  }
  if (route.method === 'get') return;

  test('changes nothing by a form without its token or of another site', async () => {
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
  });

  const { confirmation } = route;
  if (confirmation === undefined) return;
  const { button, proof } = confirmation;

  test('changes nothing before it is confirmed, with the password and code that it requires', async () => {
    const answered = await ours.browsers.owner.post(path(), ENDPOINT);
    const name = typeof button === 'string' ? button : button(new URLSearchParams(ENDPOINT));
    expect([answered.status, answered.html.includes(`>${name}</button>`)]).toEqual([200, true]);
    const [, back = ''] = /href="([^"]*)">Back without/.exec(answered.html) ?? [];
    expect((await ours.browsers.owner.get(back)).status).toBeLessThan(400);
    if (proof === undefined) return;
    const refusals: [by: Visitor, proofs: Record<string, string>, fault: string][] = [
      [ours.browsers.owner, { password: '' }, 'The password is wrong.'],
      [ours.browsers.owner, { password: 'wrong' }, 'The password is wrong.'],
    ];
    if (proof !== 'password') {
      const { by, code } = ours.guarded;
      expect((await by.post(path(), ENDPOINT)).html).toContain('name="code"');
      refusals.push(
        [by, { code: '' }, 'Enter a code too.'],
        [by, { code: '12345' }, 'The code is wrong'],
        [by, { code: code(), password: 'wrong' }, 'The password is wrong.'],
      );
    }
    for (const [by, proofs, fault] of refusals) {
      const refused = await by.confirm(path(), { ...ENDPOINT, ...proofs });
      expect(refused).toMatchObject({ status: 403, html: expect.stringContaining(fault) });
    }
  });
});

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
  const { account_id, browsers, ids } = theirs;
  const { owner } = browsers;
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
  await whileFrozen(account_id, async () => {
    const before = await everything();
    for (const [name, route] of acts) {
      if (open.includes(name)) continue;
      const { status, html } = await owner.confirm(buildPath(route, 'live', theirs));
      const isExplained = html.includes('<h1>This account is frozen</h1>');
      expect([name, status, isExplained]).toEqual([name, 403, true]);
      expect(html).not.toContain('Ticket 42');
    }
    expect(await everything()).toEqual(before);
    const seen = await owner.get('/dashboard/live/payments');
    expect(seen.html).toContain('This account is frozen: nothing can be created');
    const key = `/dashboard/live/api-keys/${ids['api-keys']}/revoke`;
    expect(await owner.confirm(key)).toMatchObject({ location: '/dashboard/live/api-keys' });
    const [revoked] = await service.stores.keys.forAccount(account_id);
    expect(revoked?.revoked_at).not.toBeNull();
  });
});

async function whileFrozen(account_id: string, work: () => Promise<void>): Promise<void> {
  const { mongo, stores } = service;
  const { accounts } = stores;
  const toBe = (is: boolean) =>
    eventually(`frozen to be ${is}`, async () => {
      return ((await accounts.get(account_id))?.frozen !== undefined) === is;
    });
  const freeze = { at: new Date().toISOString(), reason: 'Ticket 42: secret' };
  await mongo.withSession((session) => accounts.freeze(account_id, freeze, session));
  await toBe(true);
  await work();
  await mongo.withSession((session) => accounts.unfreeze(account_id, session));
  await toBe(false);
}

test('above a limit of EUR 10.00, a refund on live requires a step-up', async () => {
  const { account_id } = await service.account();
  await service.stores.accounts.setLimit(account_id, 'refund_step_up.EUR', 1_000);
  const owner = await openUser(service.stores, account_id);
  await addSecondFactor(service, owner);
  const browser = await openVisitor(service, owner);
  for (const [env, amount, isDue] of [
    ['live', '10.00', false],
    ['live', '10.01', true],
    ['live', 'ten', true],
    ['sandbox', '10.01', false],
  ] as const) {
    const { ids } = await storeResources(service, { account_id, livemode: env === 'live' });
    const path = `/dashboard/${env}/payments/${ids.payments}/refund`;
    const { html } = await browser.post(path, { amount });
    const proofs = ['password', 'code'].map((name) => html.includes(`name="${name}"`));
    expect([env, amount, ...proofs]).toEqual([env, amount, isDue, isDue]);
  }
});

test('where second factors are required, a user without one cannot act on live or on the team', async () => {
  const { stores } = service;
  const lacking = await openUser(stores, ours.account_id);
  const { secret } = await openVisitor(service, lacking);
  const before = await everything();
  await service.withApp({ config: { SECOND_FACTOR: 'required' } }, async (url) => {
    const browser = visitor(url, secret);
    for (const [name, route] of acts) {
      if (route.act === 'self.change') continue;
      const { location } = await browser.confirm(buildPath(route, 'live', ours));
      expect([name, location]).toEqual([name, '/dashboard/live/profile']);
    }
    expect((await browser.get('/dashboard/live/profile')).html).toContain('needs a second factor');
    const role = { role: 'owner' };
    const onTeam = await browser.confirm(`/dashboard/sandbox/team/${ours.ids['team']}/role`, role);
    expect(onTeam.location).toBe('/dashboard/sandbox/profile');
    const cancel = `/payments/${ours.ids['payments']}/cancel`;
    expect((await browser.post(`/dashboard/sandbox${cancel}`)).status).toBe(200);
    const { post, confirm } = visitor(url, ours.guarded.by.secret);
    expect((await post(`/dashboard/live${cancel}`)).status).toBe(200);
    expect(await everything()).toEqual(before);
    // A frozen account is made safer by a user with one.
    await whileFrozen(ours.account_id, async () => {
      const remove = `/dashboard/live/team/${lacking._id}/remove`;
      const { location } = await confirm(remove, { code: ours.guarded.code() });
      expect(location).toBe('/dashboard/live/team');
      expect(await stores.users.get(lacking._id)).toBeNull();
    });
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
  const others = ['/dashboard/sign-in', '/dashboard/nowhere'];
  for (const [method, path] of [
    ...ROUTES.map((route) => [route.method, buildPath(route, 'live', ours)] as const),
    ...others.map((path) => ['get', path] as const),
  ]) {
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
  const settlement = { ...said, wallet_address: script };
  await put('crypto_settlements', ids['crypto/settlements'] ?? '', settlement);
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
  'https://evil.example',
  '//evil.example/dashboard/live/team',
  '/dashboard/live/team%0d%0aSet-Cookie:%20a=b',
  '/dashboard/live/..%2f..%2fevil',
])('the sign-in for the page %s leads to our own pages only', async (next) => {
  const { html, headers } = await ours.browsers.owner.get(`/dashboard/sign-in?next=${next}`);
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
