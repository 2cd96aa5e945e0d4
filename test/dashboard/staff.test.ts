import { hashKey } from '../../src/store/keys';
import { fetchPage, openUser, openVisitor, PASSWORD, visitor } from '../support/dashboard';
import { useService } from '../support/service';

const service = useService({ worker: false });

async function shop() {
  const { account_id } = await service.account();
  const owner = await openUser(service.stores, account_id);
  return { account_id, owner, browser: await openVisitor(service, owner) };
}

const audited = async (account_id: string) =>
  (await service.stores.auditLog.list({ account_id, livemode: false, limit: 100 })).map(
    ({ act }) => act,
  );

test('of two owners who remove each other at once, one stays', async () => {
  const { account_id, owner, browser } = await shop();
  const second = await openUser(service.stores, account_id);
  const other = await openVisitor(service, second);
  await Promise.all([
    browser.confirm(`/dashboard/sandbox/team/${second._id}/remove`),
    other.confirm(`/dashboard/sandbox/team/${owner._id}/remove`),
  ]);
  expect(await service.stores.users.forAccount(account_id)).toHaveLength(1);
});

test('the last owner is neither removed nor given another role', async () => {
  const { account_id, owner, browser } = await shop();
  const path = `/dashboard/sandbox/team/${owner._id}`;
  await browser.confirm(`${path}/role`, { role: 'finance' });
  await browser.confirm(`${path}/remove`);
  expect((await browser.get('/dashboard/sandbox/team')).html).toContain(
    'An account needs an owner',
  );
  expect(await service.stores.users.forAccount(account_id)).toMatchObject([{ role: 'owner' }]);
});

test('a new role counts from the next request on', async () => {
  const { account_id, browser } = await shop();
  const person = await openUser(service.stores, account_id, 'developer');
  const theirs = await openVisitor(service, person);
  expect((await theirs.get('/dashboard/sandbox/api-keys')).html).toContain('Create key');
  await browser.confirm(`/dashboard/sandbox/team/${person._id}/role`, { role: 'read_only' });
  expect((await theirs.get('/dashboard/sandbox/api-keys')).html).not.toContain('Create key');
  const [line] = await service.stores.auditLog.list({ account_id, livemode: false, limit: 1 });
  expect(line).toMatchObject({
    act: 'user.role_changed',
    actor: { door: 'dashboard', email: expect.stringMatching(/^owner-/) },
    target: person._id,
    before: { role: 'developer' },
    after: { role: 'read_only' },
  });
});

test('an invitation’s link works once; a later one for the same address replaces it', async () => {
  const { account_id, browser } = await shop();
  const invite = async () => {
    const form = { email: 'Fin@Example.com', role: 'finance' };
    const { html } = await browser.confirm('/dashboard/sandbox/team/invitations', form);
    return /\/dashboard\/invitation\/[\w-]{43}/.exec(html)?.[0] ?? '';
  };
  const [older, newer] = [await invite(), await invite()];
  expect((await fetchPage(service.url, 'GET', older)).status).toBe(410);
  const join = (form: Record<string, string>) => fetchPage(service.url, 'POST', newer, { form });
  expect((await join({ password: 'short' })).status).toBe(422);
  const both = [join({ password: PASSWORD }), join({ password: PASSWORD })];
  const statuses = (await Promise.all(both)).map(({ status }) => status);
  expect(statuses.toSorted()).toEqual([303, 410]);
  const people = await service.stores.users.forAccount(account_id);
  expect(people.map(({ email, role }) => [email, role])).toContainEqual([
    'fin@example.com',
    'finance',
  ]);
  const again = await invite();
  const form = { password: PASSWORD };
  const taken = await fetchPage(service.url, 'POST', again, { form });
  expect(taken.html).toContain('has a login already');
});

test('an invitation that is withdrawn or too old is over', async () => {
  const { account_id, browser } = await shop();
  const form = { email: 'dev@example.com', role: 'developer' };
  const path = '/dashboard/sandbox/team/invitations';
  const { html } = await browser.confirm(path, form);
  const link = /\/dashboard\/invitation\/[\w-]{43}/.exec(html)?.[0] ?? '';
  expect((await fetchPage(service.url, 'GET', link)).status).toBe(200);
  await browser.post(`${path}/withdraw`, { email: form.email });
  expect((await fetchPage(service.url, 'GET', link)).status).toBe(410);
  expect(await audited(account_id)).toEqual(['user.invitation_withdrawn', 'user.invited']);
});

test('a form that is sent twice makes one key, which is shown once', async () => {
  const { account_id, browser } = await shop();
  const once = crypto.randomUUID();
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

test('the audit log is read by pages, each line once', async () => {
  const { account_id, browser } = await shop();
  const at = new Date().toISOString();
  for (let i = 0; i < 120; i += 1) {
    await service.stores.auditLog.add({
      _id: `${at}_${String(i).padStart(16, '0')}`,
      at,
      account_id,
      livemode: i === 0 ? true : null,
      actor: { door: 'command_line', system_user: '<b>mia</b>', host: 'ops-1' },
      act: 'account.updated',
      target: `line-${i}-`,
      before: null,
      after: { crypto: true },
    });
  }
  const linesOf = (html: string) => [...html.matchAll(/line-(\d+)-/g)].map(([, n]) => Number(n));
  const hrefOf = (html: string, name: string) =>
    (new RegExp(`href="([^"]*)"[^>]*>${name}</a>`).exec(html)?.[1] ?? '').replaceAll('&amp;', '&');
  const first = await browser.get('/dashboard/sandbox/audit-log');
  expect(first.html).not.toContain('<b>mia</b>');
  const second = await browser.get(hrefOf(first.html, 'Older'));
  const third = await browser.get(hrefOf(second.html, 'Older'));
  const all = [first, second, third].flatMap(({ html }) => linesOf(html));
  // The live line is not shown in the sandbox.
  expect(all).toEqual(Array.from({ length: 119 }, (_, i) => 119 - i));
  expect(third.html).not.toContain('>Older</a>');
  const back = await browser.get(hrefOf(third.html, 'Newer'));
  expect(linesOf(back.html)).toEqual(linesOf(second.html));
});

test('passwords, codes, tokens, links and keys reach neither the log nor the audit log', async () => {
  const { account_id, owner } = await shop();
  let secrets: string[] = [];
  const logged = await service.withApp({}, async (url) => {
    const form = { email: owner.email, password: PASSWORD };
    const { cookie = '' } = await fetchPage(url, 'POST', '/dashboard/sign-in', { form });
    const browser = visitor(url, cookie);
    const made = await browser.post('/dashboard/live/api-keys', {
      scope: 'payments:read',
      once: crypto.randomUUID(),
    });
    const key = /sk_live_[\w-]{43}/.exec(made.html)?.[0] ?? '';
    const wish = { email: 'x@example.com', role: 'owner' };
    const invited = await browser.confirm('/dashboard/live/team/invitations', wish);
    const token = /invitation\/([\w-]{43})/.exec(invited.html)?.[1] ?? '';
    await fetchPage(url, 'GET', `/dashboard/invitation/${token}`);
    secrets = [PASSWORD, cookie, browser.csrf, key, token];
  });
  const stored = JSON.stringify(await service.collection('audit_log').find().toArray());
  expect(stored).toContain('x@example.com');
  expect(logged.trim().split('\n').length).toBeGreaterThan(3);
  expect(secrets).toHaveLength(5);
  for (const secret of secrets) {
    expect(secret).not.toBe('');
    expect(logged).not.toContain(secret);
    expect(stored).not.toContain(secret);
  }
  expect(await audited(account_id)).toContain('user.signed_in');
});
