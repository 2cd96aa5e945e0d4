import { randomUUID } from 'node:crypto';
import { type ClientRequest, request } from 'node:http';
import { auditAct } from '../../activities/shared/operator-acts';
import { inTransaction } from '../../src/base/mongo';
import { ROUTES } from '../../src/dashboard/dashboard';
import { buildEventSchema, EVENT_TYPES, type EventType } from '../../src/domain/events/event';
import type { Role } from '../../src/domain/merchants/dashboard-role';
import { createEncrypter } from '../../src/encryption/encrypter';
import { hashSecret } from '../../src/pages/browser';
import { sendTestEvent, type TestEventDeps } from '../../src/service/events/test-event';
import { setFrozen } from '../../src/service/merchants/accounts';
import { listKeys } from '../../src/service/merchants/keys';
import { hashToken } from '../../src/service/merchants/team/members';
import { resetPassword } from '../../src/service/merchants/team/sessions';
import { auditBy } from '../../src/store/audit';
import { buildDelivery } from '../../src/store/deliveries';
import { hashKey, type KeyDocument } from '../../src/store/keys';
import type { SessionDocument } from '../../src/store/sessions';
import type { UserDocument } from '../../src/store/users';
import { verifySignature } from '../../src/webhooks/attempt';
import { createEndpointLimits } from '../../src/webhooks/endpoint-limits';
import { postWebhook } from '../../src/webhooks/post';
import { inOneWindow } from '../api/window';
import {
  fetchPage,
  openUser,
  openVisitor,
  PASSWORD,
  readText,
  useVisitor,
  type Visitor,
  visitor,
} from '../support/dashboard';
import { eventually } from '../support/eventually';
import { buildEndpoint } from '../support/factories';
import { gate } from '../support/gate';
import { useInbox } from '../support/hook';
import { idealPayment } from '../support/http';
import { useAccount, useService } from '../support/service';

const service = useService();

async function openTeam() {
  const { account_id } = await service.account();
  const owner = await openUser(service.stores, account_id);
  return { account_id, owner, browser: await openVisitor(service, owner) };
}

const audited = async (account_id: string) =>
  (await service.stores.auditLog.list({ account_id, livemode: false, limit: 100 })).map(
    ({ act }) => act,
  );

/** Invites. @returns path of the link */
const linkTo = async (browser: Visitor, email: string, role: Role = 'owner') => {
  const form = { email, role };
  const { html } = await browser.confirm('/dashboard/sandbox/team/invitations', form);
  return /\/dashboard\/invitation\/[\w-]{43}/.exec(html)?.[0] ?? '';
};

test('the last owner is neither removed nor demoted, also of two who remove each other at once', async () => {
  const { account_id, owner, browser } = await openTeam();
  const second = await openUser(service.stores, account_id);
  const other = await openVisitor(service, second);
  await Promise.all([
    browser.confirm(`/dashboard/sandbox/team/${second._id}/remove`),
    other.confirm(`/dashboard/sandbox/team/${owner._id}/remove`),
  ]);
  const [last, ...others] = await service.stores.users.forAccount(account_id);
  expect(others).toEqual([]);
  const by = last?._id === owner._id ? browser : other;
  const path = `/dashboard/sandbox/team/${last?._id}`;
  await by.confirm(`${path}/role`, { role: 'finance' });
  await by.confirm(`${path}/remove`);
  expect((await by.get('/dashboard/sandbox/team')).html).toContain('An account needs an owner');
  expect(await service.stores.users.forAccount(account_id)).toMatchObject([{ role: 'owner' }]);
});

test('a new role takes effect with the next request', async () => {
  const { account_id, browser } = await openTeam();
  const member = await openUser(service.stores, account_id, 'developer');
  const theirs = await openVisitor(service, member);
  expect((await theirs.get('/dashboard/sandbox/api-keys')).html).toContain('Create key');
  await browser.confirm(`/dashboard/sandbox/team/${member._id}/role`, { role: 'read_only' });
  expect((await theirs.get('/dashboard/sandbox/api-keys')).html).not.toContain('Create key');
  const [line] = await service.stores.auditLog.list({ account_id, livemode: false, limit: 1 });
  expect(line).toMatchObject({
    act: 'user.role_changed',
    actor: { via: 'dashboard', email: expect.stringMatching(/^owner-/) },
    target: member._id,
    before: { role: 'developer' },
    after: { role: 'read_only' },
  });
});

test('the link of an invitation works once, and a later invitation of the same address replaces it', async () => {
  const { account_id, browser } = await openTeam();
  const invite = () => linkTo(browser, 'Fin&Co@Räucher.example', 'finance');
  const [older, newer] = [await invite(), await invite()];
  expect((await fetchPage(service.url, 'GET', older)).status).toBe(410);
  const join = (form: Record<string, string>) => fetchPage(service.url, 'POST', newer, { form });
  for (const password of ['short', 'Password1234!']) {
    expect((await join({ password })).status).toBe(422);
  }
  const both = [join({ password: PASSWORD }), join({ password: PASSWORD })];
  const statuses = (await Promise.all(both)).map(({ status }) => status);
  expect(statuses.toSorted()).toEqual([303, 410]);
  const members = await service.stores.users.forAccount(account_id);
  expect(members.map(({ email, role }) => [email, role])).toContainEqual([
    'fin&co@räucher.example',
    'finance',
  ]);
  const again = await invite();
  const form = { password: PASSWORD };
  const taken = await fetchPage(service.url, 'POST', again, { form });
  expect(taken.html).toContain('is a member of the team already');
  const withdraw = '/dashboard/sandbox/team/invitations/withdraw';
  await browser.post(withdraw, { email: 'fin&co@räucher.example' });
  expect((await fetchPage(service.url, 'GET', again)).status).toBe(410);
  expect((await audited(account_id))[0]).toBe('user.invitation_withdrawn');
});

test('an account has fifty open invitations, a hundred a day, and all are listed, owners first', async () => {
  const { account_id, browser } = await openTeam();
  const invitations = service.collection('dashboard_invitations');
  const setPending = async (count: number, expires_at: Date) => {
    await invitations.deleteMany({ account_id });
    const rows = Array.from({ length: count }, (_, n) => ({
      ...{ _id: `${account_id}-${n}`, account_id, email: `${n}@decoy.example`, expires_at },
      ...{ role: 'read_only', invited_by: null, created_at: new Date().toISOString() },
    }));
    await invitations.insertMany(Object(rows));
  };
  const soon = new Date(Date.now() + 60_000);
  const team = async () => (await browser.get('/dashboard/sandbox/team')).html;
  await setPending(49, soon);
  await linkTo(browser, 'thief@example.com');
  expect(await linkTo(browser, 'one-more@example.com')).toBe('');
  const html = await team();
  expect(html).toContain('Nobody was invited: 50 are pending. Withdraw one.');
  const listed = [...html.matchAll(/<span>([^<]+@[^<]+)<\/span>/g)].map(([, email]) => email);
  expect([listed.length, listed[0]]).toEqual([50, 'thief@example.com']);
  // One of the same address replaces it, and those that have expired do not count.
  expect(await linkTo(browser, 'thief@example.com')).not.toBe('');
  await setPending(50, new Date());
  expect(await linkTo(browser, 'next@example.com')).not.toBe('');
  const { auditLog } = service.stores;
  const audit = auditBy({ stores: { auditLog }, now: () => new Date() }, { via: 'service' });
  for (let n = 0; n < 97; n += 1) {
    await audit({ act: 'user.invited', account_id, livemode: null, target: `${n}@x.example` });
  }
  expect(await linkTo(browser, 'last@example.com')).toBe('');
  expect(await team()).toContain('100 were made in 24 hours. Try again later.');
});

test.each(['removed', 'given another role', 'reset'])(
  'the invitations by a user who is %s end',
  async (how) => {
    const { account_id, browser } = await openTeam();
    const second = await openUser(service.stores, account_id);
    const link = await linkTo(await openVisitor(service, second), `${randomUUID()}@example.com`);
    const other = await linkTo(browser, `${randomUUID()}@example.com`);
    const path = `/dashboard/sandbox/team/${second._id}`;
    if (how === 'removed') await browser.confirm(`${path}/remove`);
    else if (how === 'reset') {
      const deps = { ...service, now: () => new Date(), audit: async () => {} };
      const { email } = second;
      await resetPassword(deps, { email, account_id: undefined, dropSecondFactor: false });
    } else await browser.confirm(`${path}/role`, { role: 'finance' });
    expect((await fetchPage(service.url, 'GET', link)).status).toBe(410);
    expect((await fetchPage(service.url, 'GET', other)).status).toBe(200);
  },
);

test('one e-mail can belong to users of several merchants, and no invitation reveals it', async () => {
  const [one, other] = [await openTeam(), await openTeam()];
  const email = `${randomUUID()}@example.com`;
  const join = async ({ browser }: typeof one, password: string) => {
    const link = await linkTo(browser, email, 'finance');
    const page = await fetchPage(service.url, 'GET', link);
    const { status } = await fetchPage(service.url, 'POST', link, { form: { password } });
    expect([page.status, status]).toEqual([200, 303]);
  };
  const enter = async (form: Record<string, string>) => {
    const path = '/dashboard/sign-in';
    return await fetchPage(service.url, 'POST', path, { form: { email, ...form } });
  };
  const readAccount = async (cookie = '') =>
    (await service.stores.sessions.find(hashToken(cookie), new Date()))?.account_id;
  await join(one, PASSWORD);
  await join(other, 'another long password');
  const { cookie } = await enter({ password: 'another long password' });
  expect(await readAccount(cookie)).toBe(other.account_id);
  const third = await openTeam();
  await join(third, PASSWORD);
  const choice = await enter({ password: PASSWORD });
  expect(choice).toMatchObject({ status: 200, cookie: undefined });
  expect(choice.html).toContain('<h1>Choose a merchant</h1>');
  expect(choice.html).not.toContain(other.account_id);
  const chosen = await enter({ password: PASSWORD, merchant: third.account_id });
  expect(await readAccount(chosen.cookie)).toBe(third.account_id);
  const foreign = await enter({ password: PASSWORD, merchant: other.account_id });
  expect(foreign.cookie).toBeUndefined();
});

test('a form that is sent twice makes one key and shows it once', async () => {
  const { account_id, browser } = await openTeam();
  const once = randomUUID();
  const send = () =>
    fetchPage(service.url, 'POST', '/dashboard/sandbox/api-keys', {
      headers: { Cookie: `dashboard=${browser.secret}` },
      form: { csrf: browser.csrf, scope: 'payments:read', once },
    });
  const answers = await Promise.all([send(), send()]);
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 303]);
  const shown = answers.map(({ html }) => /sk_sandbox_[\w-]{43}/.exec(html)?.[0]).find(Boolean);
  const key = await service.stores.keys.byHash(hashKey(shown ?? ''));
  expect(key).toMatchObject({ account_id, livemode: false, scopes: ['payments:read'] });
  await browser.confirm(`/dashboard/sandbox/api-keys/${key?._id}/revoke`);
  await browser.confirm(`/dashboard/sandbox/api-keys/${key?._id}/revoke`);
  expect(await audited(account_id)).toEqual(['api_key.revoked', 'api_key.created']);
});

test('of more than a thousand keys the newest are listed', async () => {
  const { account_id, browser } = await openTeam();
  const [first] = await service.stores.keys.forAccount(account_id);
  if (first === undefined) throw new Error('no key');
  const rows = Array.from({ length: 1_001 }, (_, n) => {
    const created_at = new Date(Date.parse(first.created_at) + n + 1).toISOString();
    return { ...first, _id: `key_${randomUUID()}`, hash: randomUUID(), created_at };
  });
  await service.collection<KeyDocument>('api_keys').insertMany(rows);
  const { html } = await browser.get('/dashboard/sandbox/api-keys');
  expect(html.includes(`/api-keys/${rows.at(-1)?._id}/revoke`)).toBe(true);
});

test('a valid key and a live one are listed behind more than a thousand newer keys', async () => {
  const { account_id } = await openTeam();
  const { stores } = service;
  const [valid] = await stores.keys.forAccount(account_id);
  if (valid === undefined) throw new Error('no key');
  const copy = (n: number, changes: Partial<KeyDocument>): KeyDocument => {
    const created_at = new Date(Date.parse(valid.created_at) + n).toISOString();
    return { ...valid, _id: `key_${randomUUID()}`, hash: randomUUID(), created_at, ...changes };
  };
  const live = copy(1, { livemode: true });
  const revoked = Array.from({ length: 1_001 }, (_, n) =>
    copy(n + 2, { revoked_at: valid.created_at }),
  );
  await service.collection<KeyDocument>('api_keys').insertMany([live, ...revoked]);
  const list = async (livemode: boolean) =>
    (await listKeys({ stores }, { account_id, livemode })).map(({ _id }) => _id);
  expect(await list(false)).toHaveLength(1_000);
  expect((await list(false)).at(-1)).toBe(valid._id);
  expect(await list(true)).toEqual([live._id]);
});

test('no page of the merchant shows the operator who froze the account or acted on it, or why', async () => {
  const { account_id, browser } = await openTeam();
  const { stores, mongo } = service;
  const actor = { via: 'command_line', system_user: 'zoe-system', host: 'zoe-host' } as const;
  const deps = { stores, now: () => new Date(), mongo };
  const request = { freeze: true, reason: 'Suspected mule', operator: 'zoe-operator' };
  await setFrozen({ ...deps, audit: auditBy(deps, actor) }, account_id, request);
  const act = {
    ...{ who: 'zoe-operator', what: 'snooze', why: 'Suspected mule' },
    ...{ approved_by: 'zoe-approver', by: { system_user: 'zoe-system', host: 'zoe-host' } },
  };
  const subject = {
    resource: 'payment',
    resource_id: 'pay-1',
    account_id,
    livemode: true,
  } as const;
  const at = new Date().toISOString();
  const change = { act, id: 'act-1', at, before: 'authorized', after: 'authorized' };
  await inTransaction(mongo, (session) => auditAct({ stores }, subject, change, session));
  // An export costs as much as many pages.
  const pages = ROUTES.filter(({ method, path }) => method === 'get' && !/:|[.]csv$/.test(path));
  expect(pages.length).toBeGreaterThan(15);
  for (const { path } of pages) {
    for (const env of ['sandbox', 'live']) {
      const { status, html } = await browser.get(`/dashboard/${env}${path}`);
      expect([path, status]).not.toEqual([path, 429]);
      expect(html).not.toMatch(/zoe|mule/i);
    }
  }
  const { html } = await browser.get('/dashboard/live/audit-log');
  expect(html).toMatch(/our operators.*act on a payment.*snooze.*our operators.*Account frozen/s);
});

test('the pages of the audit log have each line once', async () => {
  const { account_id, browser } = await openTeam();
  const at = new Date().toISOString();
  for (let i = 0; i < 120; i += 1) {
    await service.stores.auditLog.add({
      ...{ _id: `${at}_${String(i).padStart(16, '0')}`, at, account_id },
      ...{ livemode: i === 0 ? true : null, target: `line-${i}-`, act: 'account.updated' },
      ...{ before: null, after: { crypto: true } },
      actor: { via: 'command_line', system_user: '<b>mia</b>', host: 'ops-1' },
    });
  }
  const listLines = (html: string) => [...html.matchAll(/line-(\d+)-/g)].map(([, n]) => Number(n));
  const findLink = (html: string, name: string) =>
    (new RegExp(`href="([^"]*)"[^>]*>${name}</a>`).exec(html)?.[1] ?? '').replaceAll('&amp;', '&');
  const first = await browser.get('/dashboard/sandbox/audit-log');
  expect(first.html).not.toContain('<b>mia</b>');
  const second = await browser.get(findLink(first.html, 'Older'));
  const third = await browser.get(findLink(second.html, 'Older'));
  const all = [first, second, third].flatMap(({ html }) => listLines(html));
  // The live line is not shown in the sandbox.
  expect(all).toEqual(Array.from({ length: 119 }, (_, i) => 119 - i));
});

test('log and audit log trace a session by user, account, address and request, and hold no secret', async () => {
  const { account_id, owner } = await openTeam();
  const { _id: user_id, email } = owner;
  const headers = { 'X-Forwarded-For': '203.0.113.7' };
  let secrets: string[] = [];
  const logged = await service.withApp({ config: { TRUSTED_PROXIES: '1' } }, async (url) => {
    const enter = async (password: string) => {
      const options = { form: { email, password }, headers };
      return (await fetchPage(url, 'POST', '/dashboard/sign-in', options)).cookie ?? '';
    };
    await enter('wrong');
    const cookie = await enter(PASSWORD);
    const browser = visitor(url, cookie);
    const invite = (more: object) => {
      const form = { email: 'y@example.com', role: 'owner', ...more };
      return browser.confirm('/dashboard/live/team/invitations', form);
    };
    await invite({ password: 'wrong' });
    const newKey = { scope: 'payments:read', once: randomUUID() };
    const made = await browser.confirm('/dashboard/live/api-keys', newKey);
    const key = /sk_live_[\w-]{43}/.exec(made.html)?.[0] ?? '';
    const token = /invitation\/([\w-]{43})/.exec((await invite({})).html)?.[1] ?? '';
    await fetchPage(url, 'GET', `/dashboard/invitation/${token}`);
    await browser.confirm('/dashboard/sandbox/profile/sign-out-everywhere');
    secrets = [PASSWORD, cookie, browser.csrf, key, token];
  });
  const lines = logged
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const answered = lines.filter(({ msg }) => msg === 'answered');
  const [{ session } = { session: '' }] = answered.slice(1);
  expect(session).toMatch(/^[0-9a-f]{12}$/);
  const who = { user_id, account_id, session };
  expect([...answered.slice(0, 3), answered.at(-1)]).toMatchObject([
    { user_ids: [user_id], proof: 'password', outcome: 'wrong', address: '203.0.113.7' },
    { ...who, proof: 'password', outcome: 'right', address: '203.0.113.7' },
    { ...who, livemode: true, status: 403, proof: 'password_again', outcome: 'wrong' },
    { ...who, livemode: false, status: 303 },
  ]);
  const audit = await service.stores.auditLog.list({ account_id, livemode: false, limit: 3 });
  const { request_id } = answered.at(-1);
  expect(audit.map(({ act, actor }) => [act, actor])).toMatchObject([
    ['user.signed_out_everywhere', { user_id, session, request_id }],
    ['user.invited', { user_id, session }],
    ['user.signed_in', { user_id, address: '203.0.113.7', request_id: answered[1].request_id }],
  ]);
  const stored = JSON.stringify(await service.collection('audit_log').find().toArray());
  expect(stored).toContain('y@example.com');
  for (const secret of secrets) {
    expect(secret.length).toBeGreaterThan(20);
    expect(logged).not.toContain(secret);
    expect(stored).not.toContain(secret);
  }
});

test(
  'a member who sends slow forms, slow pages and too many of them keeps out neither the owner nor others',
  inOneWindow(async () => {
    const [{ account_id, browser }, others] = [await openTeam(), await openTeam()];
    const member = await openUser(service.stores, account_id, 'read_only');
    const { list } = service.stores.payments;
    const slow = gate();
    const read = jest.spyOn(service.stores.payments, 'list').mockImplementation(async (filter) => {
      if (filter.account_id === account_id) await slow.opened;
      return await list(filter);
    });
    const forms: ClientRequest[] = [];
    let pages: Promise<number>[] = [];
    try {
      await service.withApp({ visitCostsMax: { session: 50, account: 60 } }, async (url) => {
        const open = async () => visitor(url, (await openVisitor(service, member)).secret);
        const [slowly, often] = [await open(), await open()];
        const headers = {
          ...{ Cookie: `dashboard=${slowly.secret}`, 'Content-Length': 100 },
          'Content-Type': 'application/x-www-form-urlencoded',
        };
        for (let n = 0; n < 5; n += 1) {
          const path = '/dashboard/sandbox/profile/sessions/end';
          const form = request(`${url}${path}`, { method: 'POST', headers });
          form.on('error', () => undefined).write('session=');
          forms.push(form);
        }
        let refused = 0;
        const show = async () => {
          const { status } = await often.get('/dashboard/sandbox/payments');
          if (status === 429) refused += 1;
          return status;
        };
        pages = Array.from({ length: 30 }, show);
        // Those of an attempt that its window has left end with its server.
        for (const page of pages) page.catch(() => undefined);
        await eventually('the limits', async () => refused > 10 && read.mock.calls.length === 2);
        const theirs = visitor(url, others.browser.secret);
        expect((await theirs.get('/dashboard/sandbox/payments')).status).toBe(200);
        expect(read).toHaveBeenCalledTimes(3);
        const remove = `/dashboard/sandbox/team/${member._id}/remove`;
        const owner = visitor(url, browser.secret);
        expect((await owner.get('/dashboard/sandbox/team')).status).toBe(200);
        expect((await owner.confirm(remove)).location).toBe('/dashboard/sandbox/team');
        expect(await service.stores.users.get(member._id)).toBeNull();
        slow.release();
        expect(new Set(await Promise.all(pages))).toEqual(new Set([200, 429]));
      });
    } finally {
      slow.release();
      read.mockRestore();
      for (const form of forms) form.destroy();
    }
  }),
);

describe('the sessions of a user', () => {
  const PROFILE = '/dashboard/live/profile';
  const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';

  async function signIn({ email }: UserDocument, userAgent: string): Promise<Visitor> {
    const request = { form: { email, password: PASSWORD }, headers: { 'User-Agent': userAgent } };
    const { cookie = '' } = await fetchPage(service.url, 'POST', '/dashboard/sign-in', request);
    return visitor(service.url, cookie);
  }

  const isSignedIn = async (browser: Visitor) => (await browser.get(PROFILE)).status === 200;

  test('are listed with browser, network, start and last use, and ended only by the user, with an audit line', async () => {
    const stranger = await openTeam();
    const { account_id, owner, browser: earlier } = await openTeam();
    const here = await signIn(owner, FIREFOX);
    const other = await signIn(owner, 'something <b>else</b>');
    const seen_at = new Date('2026-01-02T03:04:05.000Z');
    await service
      .collection<SessionDocument>('dashboard_sessions')
      .updateOne({ _id: hashSecret(earlier.secret) }, { $set: { seen_at } });
    const { html } = await here.get(PROFILE);
    const rows = [...html.matchAll(/<tr>.*?<\/tr>/gs)].flatMap(([row]) =>
      row.includes('UTC') ? [row] : [],
    );
    expect(rows).toHaveLength(3);
    const ours = rows.filter((row) => row.includes('This browser'));
    expect(ours).toEqual([expect.stringMatching(/Firefox on Linux.*(127\.0\.0\.1|::\/64)/s)]);
    expect(ours[0]).not.toContain('End session');
    expect(rows.filter((row) => row.includes('End session'))).toHaveLength(2);
    expect(rows.at(-1)).toContain('2026-01-02 03:04:05 UTC');
    expect(html).not.toContain('something');
    await earlier.get(PROFILE);
    expect((await here.get(PROFILE)).html).not.toContain('2026-01-02 03:04:05 UTC');

    const end = `${PROFILE}/sessions/end`;
    const form = { session: hashSecret(here.secret) };
    await stranger.browser.post(end, form);
    expect([await isSignedIn(here), await isSignedIn(other)]).toEqual([true, true]);
    await other.post(end, form);
    expect([await isSignedIn(here), await isSignedIn(other)]).toEqual([false, true]);
    const [line] = await service.stores.auditLog.list({ account_id, livemode: false, limit: 1 });
    expect(line).toMatchObject({
      act: 'user.session_ended',
      before: { session: form.session.slice(0, 12), browser: 'Firefox on Linux' },
    });
    await other.post(end, form);
    expect((await other.get(PROFILE)).html).toContain('The session has ended already.');
    expect((await other.post(end, { session: hashSecret(other.secret) })).status).toBe(404);
    expect(await isSignedIn(other)).toBe(true);
  });
});

const shop = useAccount(service);
const owner = useVisitor(service, shop);
const reader = useVisitor(service, shop, 'read_only');
const inbox = useInbox();

const path = (rest: string) => `/dashboard/sandbox/webhooks${rest}`;
const save = (url: string) =>
  owner.post(path('/endpoint'), { url, events: 'payment.awaiting_customer' });

const findEvent = (html: string) => /deliveries\/(evt_[0-9a-f-]+)/.exec(html)?.[1] ?? '';
const findSecret = (html: string) => /whsec_[\w-]{43}/.exec(html)?.[0] ?? '';

test('a test event shows what the receiver answered, and is not sent again', async () => {
  expect((await save(inbox.url)).status).toBe(303);
  const good = await owner.post(path('/test'), { type: 'payment.failed' });
  expect(readText(good.html)).toMatch(/The test was acknowledged.*HTTP 200/);
  Object.assign(inbox.answer, { status: 503, text: '<b>no</b>' });
  const bad = await owner.post(path('/test'), { type: 'payment.failed' });
  expect(readText(bad.html)).toMatch(/was not acknowledged.*HTTP 503/);
  expect(bad.html).toContain('&lt;b>no&lt;/b>');
  const event = findEvent(bad.html);
  const failed = await owner.get(path('/send-failed'));
  expect(readText(failed.html)).toContain('No event has failed since then.');
  const listed = await owner.get(path('/deliveries?status=exhausted'));
  expect(listed.html).toContain(event);
  const shown = readText((await owner.get(path(`/deliveries/${event}`))).html);
  expect(shown).toContain('A test: what it names does not exist.');
  expect(shown).not.toContain('Send again');
  expect((await owner.post(path('/test'), { type: 'nonsense' })).status).toBe(404);
});

test('deliveries are found by their resource, and all that failed are sent again', async () => {
  const { body: payment } = await shop.post('/v1/payments', idealPayment());
  const [event] = await eventually('the delivery', async () => {
    const filter = { account_id: shop.account_id, livemode: false, resource_id: payment.id };
    const { deliveries, events } = service.stores;
    const [row] = await deliveries.listByStatus({ ...filter, status: 'delivered', limit: 1 });
    return row !== undefined && (await events.getAll([row.event_id]));
  });
  const id = `${event?._id}`;
  for (const query of [payment.id, id]) {
    expect((await owner.get(path(`/deliveries?search=${query}`))).html).toContain(id);
  }
  expect((await owner.get(path('/deliveries?method=payout.sent'))).html).not.toContain(id);
  const deliveries = service.collection('deliveries');
  await deliveries.updateOne({ event_id: id }, { $set: { status: 'exhausted' } });
  inbox.clear();
  const counted = await owner.get(path('/send-failed'));
  expect(readText(counted.html)).toContain('1 event failed.');
  expect(inbox.received).toEqual([]);
  const from = /name="from"[^>]*value="([^"]+)"/.exec(counted.html)?.[1] ?? '';
  expect((await owner.post(path('/send-failed'), { from })).status).toBe(303);
  await eventually('the delivery', async () => inbox.received.length > 0);
  expect(inbox.received[0]?.body).toBe(event?.body);
});

test('a user who may not change the endpoint sees its host, without the token in its address', async () => {
  expect((await save(`${inbox.url}?token=t0ken`)).status).toBe(303);
  const others = ['/dashboard/sandbox/audit-log', '/dashboard/sandbox/getting-started'];
  for (const page of [path(''), ...others]) {
    expect((await owner.get(page)).html).toContain('t0ken');
    const { html } = await reader.get(page);
    expect(html).toContain(new URL(inbox.url).origin);
    expect(html).not.toContain('t0ken');
  }
});

test('on live a private address is refused before the password is required, and without an endpoint nothing is sent', async () => {
  for (const form of ['/endpoint', '/endpoints/new']) {
    const to = `/dashboard/live/webhooks${form}`;
    const refused = await owner.post(to, { url: 'https://10.0.0.1/', events: 'payout.sent' });
    expect(refused.status).toBe(400);
    expect(refused.html).toContain('10.0.0.1 is a private address');
    expect(refused.html).not.toContain('name="password"');
  }
  const failed = await owner.get('/dashboard/live/webhooks/send-failed');
  expect(failed.location).toBe('/dashboard/live/webhooks');
  const page = await owner.get('/dashboard/live/webhooks');
  expect(readText(page.html)).toContain('Nothing to send it to');
  expect(page.html).not.toContain('Send test event');
  const none = await owner.confirm('/dashboard/live/webhooks/secret');
  expect(none.status).toBe(404);
});

test('the overview shows balances, today’s payments, webhooks and what needs attention', async () => {
  const shown = await service.account();
  const by = await openVisitor(service, await openUser(service.stores, shown.account_id));
  const empty = readText((await by.get('/dashboard/sandbox/overview')).html);
  expect(empty).toContain('No payment has settled in the last thirty days.');
  expect(empty).toContain('No endpoint is registered.');
  const payment = await shown.settledPayment();
  const stored = await service.stores.payments.get(payment.id);
  await service.stores.payments.setAttention(payment.id, {
    version: stored?.version ?? 0,
    attention: 'settlement_overdue',
    audit: null,
    attention_at: Date.now(),
  });
  const html = (await by.get('/dashboard/sandbox/overview')).html;
  const text = readText(html);
  const words = ['€10.50', '100.0 %', 'settlement overdue', 'Settled volume in EUR, 30 days'];
  for (const each of words) expect(text).toContain(each);
  expect(html).toContain(`/dashboard/sandbox/payments/${payment.id}`);
  expect(readText((await by.get('/dashboard/sandbox/balances')).html)).toContain('main EUR €10.50');
});

test(
  'pages are limited by their cost, for each session and for the account',
  inOneWindow(async () => {
    const { account_id } = await service.account();
    const user = await openUser(service.stores, account_id);
    const other = await openUser(service.stores, (await service.account()).account_id);
    await service.withApp({ visitCostsMax: { session: 25, account: 40 } }, async (url) => {
      const open = (each: typeof user) => openVisitor({ url, stores: service.stores }, each);
      const [first, second, third] = [await open(user), await open(user), await open(user)];
      const overview = '/dashboard/sandbox/overview';
      const statuses = async (visits: Promise<{ status: number }>[]) =>
        (await Promise.all(visits)).map(({ status }) => status).toSorted();
      const visits = [first.get(overview), first.get(overview), first.get(overview)];
      expect(await statuses(visits)).toEqual([200, 200, 429]);
      expect(await statuses([second.get(overview), second.get(overview)])).toEqual([200, 200]);
      const refused = await third.post(path('/test'), { type: 'payment.settled' });
      expect([refused.status, readText(refused.html)]).toEqual([
        429,
        expect.stringContaining('Too many pages at once'),
      ]);
      expect(Number(refused.headers.get('Retry-After'))).toBeGreaterThanOrEqual(1);
      expect((await third.get('/dashboard/live/webhooks')).status).toBe(200);
      expect((await (await open(other)).get(overview)).status).toBe(200);
    });
  }),
);

describe('several endpoints', () => {
  const shop = useAccount(service);
  const owner = useVisitor(service, shop);
  const list = () => service.stores.endpoints.list(shop.account_id, false);

  const add = (once: string, changes: Record<string, string> = {}) =>
    owner.post(path('/endpoints/new'), {
      ...{ once, url: inbox.url, description: 'Books', events: 'payout.sent' },
      ...changes,
    });

  test('an endpoint is added once, then changed, disabled and enabled on its own page', async () => {
    const once = randomUUID();
    const added = await add(once);
    expect(added.status).toBe(200);
    expect(findSecret(added.html)).not.toBe('');
    // A form that is sent twice adds one endpoint.
    expect(findSecret((await add(once)).html)).toBe('');
    const [endpoint, ...others] = await list();
    expect(others).toEqual([]);
    const page = path(`/endpoints/${endpoint?.endpoint_id}`);
    expect((await owner.get(path(''))).html).toContain(page);
    const shown = await owner.get(page);
    expect([shown.html.includes('Books'), findSecret(shown.html)]).toEqual([true, '']);
    const url = `${inbox.url}/moved`;
    await owner.post(`${page}/save`, { url, description: '', events: 'payout.sent' });
    await owner.post(`${page}/status`, { status: 'disabled' });
    const changed = { url, description: null, enabled_events: ['payout.sent'] };
    expect(await list()).toMatchObject([{ ...changed, disabled_reason: 'merchant' }]);
    expect((await owner.get(page)).html).toContain('Disabled');
    await owner.post(`${page}/status`, { status: 'enabled' });
    expect((await list())[0]?.disabled_reason).toBeUndefined();
    expect((await owner.confirm(`${page}/delete`)).status).toBe(303);
    expect(await list()).toEqual([]);
    expect((await owner.get(page)).status).toBe(404);
  });

  test.each([
    ['/endpoint', { url: 'http://10.0.0.1/' }, '10.0.0.1 is a private address'],
    ['/endpoint', { url: '"><script>alert(1)</script>' }, 'is not an absolute URL'],
    ['/endpoints/new', { events: '' }, 'Choose at least one event type.'],
    ['/endpoints/ID/save', { url: 'http://10.0.0.1/' }, '10.0.0.1 is a private address'],
  ])('%s refuses %j with the reason and leaves the form as it was filled in', async (...row) => {
    const [form, changes, reason] = row;
    if ((await list()).length === 0) await add(randomUUID());
    const before = await list();
    const [{ endpoint_id } = { endpoint_id: '' }] = before;
    const fields = { url: inbox.url, description: 'Sales', events: 'payout.sent', ...changes };
    const once = randomUUID();
    const to = path(form.replace('ID', endpoint_id));
    const { status, html } = await owner.post(to, { ...fields, once });
    expect([status, html.includes(reason), html.includes('<script>alert')]).toEqual([
      ...[400, true, false],
    ]);
    const typed = fields.url.replaceAll('"', '&quot;').replaceAll('<', '&lt;');
    expect(html).toContain(`value="${typed}"`);
    if (form !== '/endpoint') expect(html).toContain('value="Sales"');
    if (form === '/endpoints/new') expect(html).toContain(once);
    expect(await list()).toEqual(before);
  });

  test('the pages of an event with several endpoints show each delivery', async () => {
    await add(randomUUID(), { url: `${inbox.url}/other` });
    const [, other] = await list();
    const test = await owner.post(path('/test'), { type: 'payout.sent' });
    const event_id = findEvent(test.html);
    const event = await service.stores.events.get(event_id);
    if (event === null || other === undefined) throw new Error('There is no event or endpoint.');
    const { endpoint_id } = other;
    const row = buildDelivery(event, endpoint_id, 'exhausted');
    await service.stores.deliveries.insert([{ ...row, attempts: 12 }]);
    for (const at of [path('/deliveries'), path(`/deliveries/${event_id}`)]) {
      const { html } = await owner.get(at);
      expect(html).toMatch(
        /<span class="badge good">Delivered<.*<span class="badge bad">Exhausted</s,
      );
    }
    const { html } = await owner.get(path(`/deliveries/${event_id}`));
    expect(html).toContain(`/endpoints/${endpoint_id}"><code>${other.url}<`);
    expect((await owner.get(path(''))).html).toContain('Your oldest endpoint');
  });

  test('a disabled oldest endpoint is shown as such, and is not tested', async () => {
    const [oldest] = await list();
    const page = path(`/endpoints/${oldest?.endpoint_id}`);
    await owner.post(`${page}/status`, { status: 'disabled' });
    const { html } = await owner.get(path(''));
    expect(html).not.toContain('Send test event');
    expect(html).toMatch(/Your oldest endpoint.*Disabled.*All endpoints/s);
  });
});

describe('a test event', () => {
  const shop = useAccount(service);
  let deps: TestEventDeps;
  let secret: string;
  beforeAll(async () => {
    secret = (await buildEndpoint(shop, { url: inbox.url })).signing_secret;
    deps = {
      ...{ stores: service.stores, encrypter: createEncrypter(service.keys.seal) },
      ...{ limits: createEndpointLimits({ slots: 20 }), allowPrivate: true, post: postWebhook },
      ...{ audit: async () => {}, now: () => new Date() },
    };
  });
  const send = (type: EventType, more: Partial<TestEventDeps> = {}, livemode = false) => {
    const { account_id } = shop;
    return sendTestEvent({ ...deps, ...more }, { account_id, livemode, type, request_id: 'req-1' });
  };

  test('of each type is signed, has data.test, and is stored', async () => {
    for (const type of EVENT_TYPES) {
      inbox.clear();
      expect(await send(type)).toMatchObject({ outcome: 'delivered', status_code: 200 });
      const [{ headers, body } = { headers: {}, body: '' }] = inbox.received;
      expect(headers['service-event-type']).toBe(type);
      const header = String(headers['service-signature']);
      expect(verifySignature({ header, body, secret, now: Date.now() / 1_000 })).toBe(true);
      const event = buildEventSchema(type).strict().parse(JSON.parse(body));
      expect(event.data).toMatchObject({ test: true });
      expect(await service.stores.deliveries.forEvents([event.id])).toMatchObject([
        { status: 'delivered', attempts: 1, next_attempt_at: null },
      ]);
    }
  });

  test('has no attempt when its process dies before the answer', async () => {
    const post = () => Promise.reject(new Error('killed'));
    await expect(send('payout.sent', { post })).rejects.toThrow('killed');
    const { events, deliveries } = service.stores;
    const owner = { account_id: shop.account_id, livemode: false };
    const [event] = await events.list({ ...owner, limit: 1 });
    expect(event?.type).toBe('payout.sent');
    expect(await deliveries.forEvents([event?._id ?? ''])).toMatchObject([
      { status: 'exhausted', attempts: 0 },
    ]);
  });

  test('needs an endpoint, and waits for no other that is being sent', async () => {
    const onLive = send('payment.settled', {}, true);
    await expect(onLive).rejects.toMatchObject({ code: 'webhook_not_set' });
    const limits = createEndpointLimits({ slots: 20 });
    const sendTwo = async () => {
      const { opened, release } = gate();
      inbox.answer.hold = opened;
      const both = [1, 2].map(() => send('payment.failed', { limits }));
      await Promise.race(both).catch(() => {});
      release();
      return await Promise.allSettled(both);
    };
    // On a busy machine the answer may be held for longer than a test waits.
    const settled = await eventually('an answer in time', async () => {
      const both = await sendTwo();
      return both.every((one) => one.status === 'rejected' || one.value.error === null) && both;
    });
    expect(settled).toEqual(
      expect.arrayContaining([
        { status: 'rejected', reason: expect.objectContaining({ code: 'endpoint_busy' }) },
        { status: 'fulfilled', value: expect.objectContaining({ outcome: 'delivered' }) },
      ]),
    );
  });

  test('and its attempt have the time of the account', async () => {
    await service.stores.accounts.storeOffset(shop.account_id, 86_400_000);
    const { at, event_id } = await send('payment.settled');
    expect(at).toBe((await service.stores.events.get(event_id))?.created);
  });
});
