import { randomUUID } from 'node:crypto';
import { auditAct } from '../../activities/shared/operator-acts';
import { inTransaction } from '../../src/base/mongo';
import { ROUTES } from '../../src/dashboard/dashboard';
import type { Role } from '../../src/domain/account/dashboard-role';
import { hashSecret } from '../../src/pages/browser';
import { setFrozen } from '../../src/service/merchants/accounts';
import { hashToken } from '../../src/service/merchants/team/members';
import { resetPassword } from '../../src/service/merchants/team/sessions';
import { auditBy } from '../../src/store/audit';
import { hashKey } from '../../src/store/keys';
import type { SessionDocument } from '../../src/store/sessions';
import type { UserDocument } from '../../src/store/users';
import {
  fetchPage,
  openUser,
  openVisitor,
  PASSWORD,
  type Visitor,
  visitor,
} from '../support/dashboard';
import { gate } from '../support/gate';
import { eventually } from '../support/http';
import { useService } from '../support/service';

const service = useService();

async function shop() {
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

test('of two owners who remove each other at once, one remains', async () => {
  const { account_id, owner, browser } = await shop();
  const second = await openUser(service.stores, account_id);
  const other = await openVisitor(service, second);
  await Promise.all([
    browser.confirm(`/dashboard/sandbox/team/${second._id}/remove`),
    other.confirm(`/dashboard/sandbox/team/${owner._id}/remove`),
  ]);
  expect(await service.stores.users.forAccount(account_id)).toHaveLength(1);
});

test('the last owner is neither removed nor demoted', async () => {
  const { account_id, owner, browser } = await shop();
  const path = `/dashboard/sandbox/team/${owner._id}`;
  await browser.confirm(`${path}/role`, { role: 'finance' });
  await browser.confirm(`${path}/remove`);
  expect((await browser.get('/dashboard/sandbox/team')).html).toContain(
    'An account needs an owner',
  );
  expect(await service.stores.users.forAccount(account_id)).toMatchObject([{ role: 'owner' }]);
});

test('a new role takes effect with the next request', async () => {
  const { account_id, browser } = await shop();
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
  const { account_id, browser } = await shop();
  const invite = () => linkTo(browser, 'Fin@Example.com', 'finance');
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
    'fin@example.com',
    'finance',
  ]);
  const again = await invite();
  const form = { password: PASSWORD };
  const taken = await fetchPage(service.url, 'POST', again, { form });
  expect(taken.html).toContain('is a member of the team already');
  const withdraw = '/dashboard/sandbox/team/invitations/withdraw';
  await browser.post(withdraw, { email: 'fin@example.com' });
  expect((await fetchPage(service.url, 'GET', again)).status).toBe(410);
  expect((await audited(account_id))[0]).toBe('user.invitation_withdrawn');
});

test.each(['removed', 'given another role', 'reset'])(
  'ends the invitations by a user who is %s',
  async (how) => {
    const { account_id, browser } = await shop();
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
  const [one, other] = [await shop(), await shop()];
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
  const third = await shop();
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
  const { account_id, browser } = await shop();
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

test('no page of the merchant shows who froze the account or why', async () => {
  const { account_id, browser } = await shop();
  const actor = { via: 'command_line', system_user: 'zoe-system', host: 'zoe-host' } as const;
  const deps = { stores: service.stores, now: () => new Date(), mongo: service.mongo };
  const request = { freeze: true, reason: 'Suspected mule', operator: 'zoe-operator' };
  await setFrozen({ ...deps, audit: auditBy(deps, actor) }, account_id, request);
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
  const { html } = await browser.get('/dashboard/sandbox/audit-log');
  expect(html).toMatch(/our operators.*Account frozen/s);
});

test('the merchant’s audit log shows neither the operator of an act nor the reason', async () => {
  const { account_id, browser } = await shop();
  const { stores, mongo } = service;
  const act = {
    ...{ who: 'zoe-operator', what: 'snooze', why: 'Suspected mule' },
    ...{ approved_by: 'zoe-approver', by: { system_user: 'zoe-system', host: 'zoe-host' } },
  };
  const payment = { resource: 'payment', resource_id: 'pay-1' } as const;
  const subject = { ...payment, account_id, livemode: true };
  const at = new Date().toISOString();
  const change = { act, id: 'act-1', at, before: 'authorized', after: 'authorized' };
  await inTransaction(mongo, (session) => auditAct({ stores }, subject, change, session));
  const { html } = await browser.get('/dashboard/live/audit-log');
  expect(html).toMatch(/our operators.*act on a payment.*snooze/s);
  expect(html).not.toMatch(/zoe|mule/i);
});

test('the pages of the audit log have each line once', async () => {
  const { account_id, browser } = await shop();
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
  const { account_id, owner } = await shop();
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

test('slow pages of one merchant leave connections to the others', async () => {
  const [ours, theirs] = [await shop(), await shop()];
  const { list } = service.stores.payments;
  const slow = gate();
  const read = jest.spyOn(service.stores.payments, 'list').mockImplementation(async (filter) => {
    if (filter.account_id === ours.account_id) await slow.opened;
    return await list(filter);
  });
  try {
    await service.withApp({}, async (url) => {
      const show = (secret: string) => visitor(url, secret).get('/dashboard/sandbox/payments');
      const pages = Array.from({ length: 8 }, () => show(ours.browser.secret));
      await eventually('the pages to wait', async () => read.mock.calls.length === 3);
      expect((await show(theirs.browser.secret)).status).toBe(200);
      expect(read).toHaveBeenCalledTimes(4);
      slow.release();
      expect((await Promise.all(pages)).map(({ status }) => status)).toEqual(Array(8).fill(200));
    });
  } finally {
    slow.release();
    read.mockRestore();
  }
});

describe('the sessions of a user', () => {
  const PROFILE = '/dashboard/live/profile';
  const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';

  async function signIn({ email }: UserDocument, userAgent: string): Promise<Visitor> {
    const form = { email, password: PASSWORD };
    const headers = { 'User-Agent': userAgent };
    const { cookie = '' } = await fetchPage(service.url, 'POST', '/dashboard/sign-in', {
      form,
      headers,
    });
    return visitor(service.url, cookie);
  }

  const listRows = (html: string) =>
    [...html.matchAll(/<tr>.*?<\/tr>/gs)].map(([row]) => row).filter((row) => row.includes('UTC'));

  const listed = async (account_id: string) =>
    (await service.stores.auditLog.list({ account_id, livemode: false, limit: 2 })).map(
      ({ act, before }) => ({ act, before }),
    );

  const isSignedIn = async (browser: Visitor) => (await browser.get(PROFILE)).status === 200;

  test('the profile lists each session with browser, network, start and last use, and marks its own', async () => {
    const { owner, browser: earlier } = await shop();
    const here = await signIn(owner, FIREFOX);
    await signIn(owner, 'something <b>else</b>');
    const seen_at = new Date('2026-01-02T03:04:05.000Z');
    await service
      .collection<SessionDocument>('dashboard_sessions')
      .updateOne({ _id: hashSecret(earlier.secret) }, { $set: { seen_at } });
    const { html } = await here.get(PROFILE);
    const rows = listRows(html);
    expect(rows).toHaveLength(3);
    const ours = rows.filter((row) => row.includes('This browser'));
    expect(ours).toHaveLength(1);
    expect(ours[0]).toContain('Firefox on Linux');
    expect(ours[0]).toMatch(/127\.0\.0\.1|::\/64/);
    expect(ours[0]).not.toContain('End session');
    expect(rows.filter((row) => row.includes('End session'))).toHaveLength(2);
    expect(rows.at(-1)).toContain('2026-01-02 03:04:05 UTC');
    expect(html).not.toContain('something');
    await earlier.get(PROFILE);
    expect((await here.get(PROFILE)).html).not.toContain('2026-01-02 03:04:05 UTC');
  });

  test('only its user ends a session, with a line in the audit log', async () => {
    const [{ account_id, owner, browser: here }, stranger] = [await shop(), await shop()];
    const other = await signIn(owner, FIREFOX);
    const form = { session: hashSecret(other.secret) };
    await stranger.browser.post(`${PROFILE}/sessions/end`, form);
    expect(await isSignedIn(other)).toBe(true);
    await here.post(`${PROFILE}/sessions/end`, form);
    expect([await isSignedIn(other), await isSignedIn(here)]).toEqual([false, true]);
    const [line] = await listed(account_id);
    expect(line).toMatchObject({
      act: 'user.session_ended',
      before: { session: form.session.slice(0, 12), browser: 'Firefox on Linux' },
    });
    await here.post(`${PROFILE}/sessions/end`, form);
    expect((await here.get(PROFILE)).html).toContain('The session has ended already.');
    const own = { session: hashSecret(here.secret) };
    expect((await here.post(`${PROFILE}/sessions/end`, own)).status).toBe(404);
    expect(await isSignedIn(here)).toBe(true);
  });
});
