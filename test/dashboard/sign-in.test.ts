import { randomBytes } from 'node:crypto';
import { Secret, TOTP } from 'otpauth';
import { inTransaction } from '../../src/base/mongo';
import { createEncrypter } from '../../src/encryption/encrypter';
import { hashSecret } from '../../src/pages/browser';
import { startSession } from '../../src/service/team/sessions';
import type { SessionDocument } from '../../src/store/sessions';
import { totpOwner, type UserDocument } from '../../src/store/users';
import { fetchPage, openUser, openVisitor, PASSWORD, visitor } from '../support/dashboard';
import { useService } from '../support/service';

const START = '/dashboard/live/getting-started';

const service = useService({ worker: false });

afterEach(async () => {
  await service.collection('dashboard_throttles').deleteMany();
});

async function owner(): Promise<UserDocument> {
  const { account_id } = await service.account();
  return await openUser(service.stores, account_id);
}

const signIn = (form: Record<string, string>, headers?: Record<string, string>) =>
  fetchPage(service.url, 'POST', '/dashboard/sign-in', { form, ...(headers && { headers }) });

const setSessions = (user_id: string, change: Partial<SessionDocument>) =>
  service
    .collection<SessionDocument>('dashboard_sessions')
    .updateMany({ user_id }, { $set: change });

test('a right password leads to the page that was asked for, until sign-out', async () => {
  const { email, _id } = await owner();
  const turned = await fetchPage(service.url, 'GET', START);
  expect(turned.location).toBe(`/dashboard/sign-in?next=${encodeURIComponent(START)}`);
  const entered = await signIn({ email: email.toUpperCase(), password: PASSWORD, next: START });
  expect(entered).toMatchObject({ status: 303, location: START });
  expect(entered.headers.get('set-cookie')).toContain('HttpOnly; SameSite=Lax');
  const browser = visitor(service.url, entered.cookie ?? '');
  expect((await browser.get(START)).html).toContain('Test Shop');
  expect((await service.stores.users.get(_id))?.signed_in_at).not.toBeNull();
  expect((await browser.post('/dashboard/sign-out')).location).toBe('/dashboard/sign-in');
  expect((await browser.get(START)).status).toBe(303);
});

test('a password that changes while it is checked begins no session', async () => {
  const user = await owner();
  const { stores, mongo } = service;
  await inTransaction(mongo, (session) => stores.users.setPassword(user._id, 'other', session));
  const deps = { stores, mongo, now: () => new Date() };
  expect(await startSession(deps, user, 'password', null)).toBeNull();
  expect(await startSession(deps, user, 'whole', null)).toBeNull();
});

test('a wrong password and an unknown e-mail are answered alike', async () => {
  const { email } = await owner();
  const words = async (given: string) => {
    const { status, html } = await signIn({ email: given, password: 'wrong' });
    return { status, html: html.replace(given, '') };
  };
  expect(await words(email)).toEqual(await words('nobody@example.com'));
  const longest = { email, password: 'x'.repeat(201) };
  expect((await signIn(longest)).status).toBe(401);
});

test('after ten wrong passwords the right one waits, too, known or not', async () => {
  const { email } = await owner();
  for (const given of [email, 'nobody@example.com']) {
    const tries = Array.from({ length: 10 }, () => signIn({ email: given, password: 'wrong' }));
    expect((await Promise.all(tries)).map(({ status }) => status)).toEqual(Array(10).fill(401));
    const refused = await signIn({ email: given, password: PASSWORD });
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(800);
    expect(refused.html).toContain('Try again in 15 minutes.');
  }
});

test('right passwords are not counted', async () => {
  const { email } = await owner();
  for (let i = 0; i < 12; i += 1) {
    expect((await signIn({ email, password: PASSWORD })).status).toBe(303);
  }
});

test('a session that was planted before sign-in is worth nothing after it', async () => {
  const user = await owner();
  const made = randomBytes(32).toString('base64url');
  const real = await openVisitor(service, await owner());
  for (const planted of [made, real.secret]) {
    const headers = { Cookie: `dashboard=${planted}` };
    const entered = await signIn({ email: user.email, password: PASSWORD }, headers);
    expect(entered.cookie).toMatch(/^[\w-]{43}$/);
    expect(entered.cookie).not.toBe(planted);
    expect((await visitor(service.url, planted).get(START)).status).toBe(303);
  }
});

test('only hashes of sessions are stored', async () => {
  const { secret } = await openVisitor(service, await owner());
  const db = service.db;
  const stored = JSON.stringify(await db.collection('dashboard_sessions').find().toArray());
  expect(stored).toContain(hashSecret(secret));
  expect(stored).not.toContain(secret);
});

test('a session ends when it was not used, and its end is moved on by use up to the last', async () => {
  const user = await owner();
  const browser = await openVisitor(service, user);
  const soon = new Date(Date.now() + 600_000);
  await setSessions(user._id, { expires_at: soon });
  expect((await browser.get(START)).status).toBe(200);
  const moved = await service.stores.sessions.find(hashSecret(browser.secret), new Date());
  expect(moved?.expires_at.getTime()).toBeGreaterThan(soon.getTime() + 3_600_000);
  await setSessions(user._id, { ends_at: soon, expires_at: new Date(Date.now() + 60_000) });
  await browser.get(START);
  const last = await service.stores.sessions.find(hashSecret(browser.secret), new Date());
  expect(last?.expires_at).toEqual(soon);
  await setSessions(user._id, { expires_at: new Date(Date.now() - 1) });
  expect((await browser.get(START)).status).toBe(303);
});

test('a person who signs out everywhere, or changes the password, ends other sessions', async () => {
  const user = await owner();
  const [here, there] = [await openVisitor(service, user), await openVisitor(service, user)];
  const path = '/dashboard/live/profile';
  const short = await here.confirm(`${path}/password`, { new_password: 'short' });
  expect(short.status).toBe(303);
  expect((await here.get(path)).html).toContain('choose 12 to 200 characters');
  const changed = 'another good password';
  await here.confirm(`${path}/password`, { new_password: changed });
  expect((await there.get(path)).status).toBe(303);
  expect((await here.get(path)).status).toBe(200);
  expect((await signIn({ email: user.email, password: PASSWORD })).status).toBe(401);
  expect((await signIn({ email: user.email, password: changed })).status).toBe(303);
  await here.confirm(`${path}/sign-out-everywhere`);
  expect((await here.get(path)).status).toBe(303);
});

test('a page that asks for the password again never repeats a new one', async () => {
  const browser = await openVisitor(service, await owner());
  const form = { password: 'wrong', new_password: 'another good password' };
  const { html } = await browser.confirm('/dashboard/live/profile/password', form);
  expect(html).toContain('The password is wrong.');
  expect(html).not.toContain(form.new_password);
});

describe('a second factor', () => {
  async function guarded() {
    const user = await owner();
    const secret = new Secret({ size: 20 }).base32;
    const sealer = createEncrypter(service.keys.seal);
    const sealed = await sealer.encrypt(secret, totpOwner(user._id));
    await service
      .collection<UserDocument>('users')
      .updateOne({ _id: user._id }, { $set: { totp: { sealed, step: 0 } } });
    const code = () => new TOTP({ secret: Secret.fromBase32(secret) }).generate();
    return { user, code };
  }
  const PATH = '/dashboard/sign-in/code';

  async function half({ email }: UserDocument) {
    const entered = await signIn({ email, password: PASSWORD, next: START });
    expect(entered.location).toBe(`${PATH}?next=${encodeURIComponent(START)}`);
    return visitor(service.url, entered.cookie ?? '');
  }

  test('opens nothing before its code, which works once and under a new session', async () => {
    const { user, code } = await guarded();
    const browser = await half(user);
    expect((await browser.get(START)).location).toBe(PATH);
    expect((await browser.post('/dashboard/live/api-keys')).location).toBe(PATH);
    const used = code();
    const entered = await browser.post(PATH, { code: used, next: START });
    expect(entered).toMatchObject({ status: 303, location: START });
    expect((await browser.get(START)).location).toContain('/dashboard/sign-in?');
    expect((await visitor(service.url, entered.cookie ?? '').get(START)).status).toBe(200);
    expect((await (await half(user)).post(PATH, { code: used })).status).toBe(401);
  });

  test('is not guessed: after ten codes the right one waits, too', async () => {
    const { user, code } = await guarded();
    const browser = await half(user);
    const tries = ['', '000', 'abc', '1234567', 'AAAA-BBBB', '1', '2', '3', '4', '5'];
    for (const guess of tries) {
      expect((await browser.post(PATH, { code: guess })).status).toBe(401);
    }
    expect((await browser.post(PATH, { code: code() })).status).toBe(429);
  });

  test('a form without the token is refused', async () => {
    const { user, code } = await guarded();
    const browser = await half(user);
    expect((await browser.post(PATH, { code: code(), csrf: '' })).status).toBe(403);
  });
});

test.each(['/dashboard/sandbox/nowhere', '/dashboard/prod/getting-started', '/dashboard/x'])(
  '%s is no page',
  async (path) => {
    const browser = await openVisitor(service, await owner());
    expect((await browser.get(path)).status).toBe(404);
  },
);
