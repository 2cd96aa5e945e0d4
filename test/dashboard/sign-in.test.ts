import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { Secret, TOTP } from 'otpauth';
import { inTransaction } from '../../src/base/mongo';
import { createEncrypter } from '../../src/encryption/encrypter';
import { hashPassword } from '../../src/encryption/password';
import { hashSecret } from '../../src/pages/browser';
import {
  getOffer,
  hashRecoveryCode,
  makeRecoveryCodes,
  offerSecret,
  switchOn,
} from '../../src/service/merchants/team/second-factor';
import {
  changePassword,
  endOtherSession,
  endOtherSessions,
  resetPassword,
  signOutEverywhere,
  startSession,
} from '../../src/service/merchants/team/sessions';
import { hashKey } from '../../src/store/keys';
import type { SessionDocument } from '../../src/store/sessions';
import type { UserDocument } from '../../src/store/users';
import { createAuthenticator } from '../support/authenticator';
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
import { gate } from '../support/gate';
import { useService } from '../support/service';

const START = '/dashboard/live/getting-started';

// These tests fill and clear the counters of sign-ins, which all visitors of one network share.
const service = useService({ alone: true, worker: false });

const throttles = () => service.collection<{ _id: string }>('dashboard_throttles');

afterEach(async () => {
  await throttles().deleteMany();
});

const getDeps = () => ({
  ...{ ...service, now: () => new Date(), audit: async () => {} },
  encrypter: createEncrypter(service.keys.seal),
});

async function owner(): Promise<UserDocument> {
  const { account_id } = await service.account();
  return await openUser(service.stores, account_id);
}

const signIn = (form: Record<string, string>, headers?: Record<string, string>) =>
  fetchPage(service.url, 'POST', '/dashboard/sign-in', { form, ...(headers && { headers }) });

/** Cookie by which a browser that has signed in is known. */
function findDevice({ headers }: { headers: Headers }): { Cookie: string } {
  const set = headers.getSetCookie().find((each) => each.startsWith('dashboard_device='));
  return { Cookie: set?.split(';')[0] ?? '' };
}

const setSessions = (user_id: string, change: Partial<SessionDocument>) =>
  service
    .collection<SessionDocument>('dashboard_sessions')
    .updateMany({ user_id }, { $set: change });

const setUser = ({ _id }: UserDocument, change: object) =>
  service.collection<UserDocument>('users').updateOne({ _id }, { $set: change });

test('a request with a malformed Host is answered', async () => {
  const headers = { host: 'x:99999' };
  const call = request(`${service.url}/dashboard/sign-in?next=${START}`, { headers }).end();
  const [response]: IncomingMessage[] = await once(call, 'response');
  response?.resume();
  expect(response?.statusCode).toBe(200);
});

test('the right password leads to the requested page, until sign-out', async () => {
  const { email, _id } = await owner();
  const redirected = await fetchPage(service.url, 'GET', START);
  expect(redirected.location).toBe(`/dashboard/sign-in?next=${encodeURIComponent(START)}`);
  const entered = await signIn({ email: email.toUpperCase(), password: PASSWORD, next: START });
  expect(entered).toMatchObject({ status: 303, location: START });
  expect(entered.headers.get('set-cookie')).toContain('HttpOnly; SameSite=Lax');
  const browser = visitor(service.url, entered.cookie ?? '');
  expect((await browser.get(START)).html).toContain('Test Shop');
  expect((await service.stores.users.get(_id))?.signed_in_at).not.toBeNull();
  expect((await browser.post('/dashboard/sign-out')).location).toBe('/dashboard/sign-in');
  expect((await browser.get(START)).status).toBe(303);
});

test.each<Record<string, string>>([
  { 'sec-fetch-site': 'cross-site' },
  { origin: 'https://evil.example' },
])('the sign-in form of another site is refused (%j)', async (headers) => {
  const { email } = await owner();
  const answer = await signIn({ email, password: PASSWORD }, headers);
  expect([answer.status, answer.cookie]).toEqual([403, undefined]);
});

test('a password that changes during its check begins no session', async () => {
  const user = await owner();
  const { stores, mongo } = service;
  await inTransaction(mongo, (session) => stores.users.setPassword(user._id, 'other', session));
  const deps = { stores, mongo, now: () => new Date() };
  for (const stage of ['password', 'whole'] as const) {
    const proof = { by: 'password' } as const;
    const session = { stage, device: 'device', oldSecret: null, proof };
    expect(await startSession(deps, user, session)).toBeNull();
  }
});

test.each([true, false])(
  'a password reset drops a second factor that is added meanwhile, and does nothing if the user leaves meanwhile (%s)',
  async (leaves) => {
    const user = await owner();
    const { users } = service.stores;
    const find = jest.spyOn(users, 'byEmail').mockImplementationOnce(async () => {
      await addSecondFactor(service, user);
      if (leaves) await inTransaction(service.mongo, (session) => users.remove(user._id, session));
      return [user];
    });
    const request = { email: user.email, account_id: undefined, dropSecondFactor: true };
    expect(await resetPassword(getDeps(), request)).toEqual(leaves ? null : expect.any(String));
    find.mockRestore();
    expect((await users.get(user._id))?.totp).toBe(leaves ? undefined : null);
  },
);

test('a wrong password gets the same answer as late for an unknown e-mail and one of several merchants', async () => {
  const user = await owner();
  for (const { account_id } of [await service.account(), await service.account()]) {
    await service.stores.users.insert({ ...user, _id: `user_${account_id}`, account_id });
  }
  const answer = async (email: string) => {
    const startedAt = performance.now();
    const { status, html } = await signIn({ email, password: 'wrong' });
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(500);
    return { status, html: html.replace(email, '') };
  };
  expect(await answer(user.email)).toEqual(await answer('nobody@example.com'));
  const longest = { email: user.email, password: 'x'.repeat(201) };
  expect((await signIn(longest)).status).toBe(401);
});

/** Sets what was counted so far, as if so many had come. */
const setCounts = (count: number, _id: object = { $exists: true }) =>
  throttles().updateMany({ _id }, { $set: { count } });

test('after ten wrong passwords the right one waits too, for known and unknown addresses', async () => {
  const { email } = await owner();
  for (const address of [email, 'nobody@example.com']) {
    expect((await signIn({ email: address, password: 'wrong' })).status).toBe(401);
    await setCounts(9);
    expect((await signIn({ email: address, password: 'wrong' })).status).toBe(401);
    const refused = await signIn({ email: address, password: PASSWORD });
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(800);
    expect(refused.html).toContain('Try again in 15 minutes.');
  }
});

test('the password and the browser of a user of one merchant give no attempts at that of another merchant', async () => {
  const user = await owner();
  const { account_id } = await service.account();
  const own = { email: user.email, password: 'another long password' };
  const password_hash = await hashPassword(own.password);
  const other = { ...user, _id: `user_${account_id}`, account_id, password_hash };
  await service.stores.users.insert(other);
  const device = findDevice(await signIn(own));
  for (const headers of [{}, device]) {
    await throttles().deleteMany();
    await signIn({ ...own, password: 'wrong' }, headers);
    await setCounts(9);
    expect((await signIn(own, headers)).status).toBe(303);
    expect((await signIn({ ...own, password: PASSWORD }, headers)).status).toBe(429);
  }
  expect((await signIn(own, device)).status).toBe(303);
});

test('wrong passwords of strangers lock out neither another network nor a browser that signed in before', async () => {
  const { email } = await owner();
  const behind = (address: string, more = {}) => ({ 'X-Forwarded-For': address, ...more });
  const log = await service.withApp({ config: { TRUSTED_PROXIES: '1' } }, async (url) => {
    const enter = (password: string, headers: Record<string, string>) =>
      fetchPage(url, 'POST', '/dashboard/sign-in', { form: { email, password }, headers });
    const device = findDevice(await enter(PASSWORD, behind('203.0.113.1')));
    const statuses = async (password: string, count: number, headers: Record<string, string>) => {
      const all = Array.from({ length: count }, () => enter(password, headers));
      return new Set((await Promise.all(all)).map(({ status }) => status));
    };
    // Ten from one /48, which has more networks than that; right ones are not counted.
    await enter('wrong', behind('2001:db8:1:2::1'));
    await setCounts(9, { $regex: '^pair:' });
    await setCounts(99, { $regex: '^email:' });
    for (let n = 0; n < 3; n += 1) {
      expect(await statuses(PASSWORD, 1, behind('2001:db8:1:2::1'))).toEqual(new Set([303]));
    }
    await setCounts(0, { $regex: '^email:' });
    await enter('wrong', behind('2001:db8:1:2::1'));
    await setCounts(9, { $regex: '^pair:' });
    await enter('wrong', behind('2001:db8:1:2::2'));
    expect(await statuses(PASSWORD, 1, behind('2001:db8:1:ffff::1'))).toEqual(new Set([429]));
    const before = await throttles().find().toArray();
    expect(await statuses(PASSWORD, 3, behind('2001:db8:1:2::1'))).toEqual(new Set([429]));
    expect(await throttles().find().toArray()).toEqual(before);
    expect(await statuses(PASSWORD, 1, behind('2001:db8:2:2::1'))).toEqual(new Set([303]));
    // The browser that signed in has a budget of its own.
    expect(await statuses(PASSWORD, 1, behind('2001:db8:1:2::1', device))).toEqual(new Set([303]));
    expect(await statuses('wrong', 10, behind('203.0.113.1', device))).toEqual(new Set([401]));
    expect(await statuses(PASSWORD, 1, behind('203.0.113.1', device))).toEqual(new Set([429]));
    expect(await statuses(PASSWORD, 1, behind('203.0.113.1'))).toEqual(new Set([303]));
    // Those of an address have a limit over all networks, too; those of all addresses have none.
    await throttles().deleteMany();
    await enter('wrong', behind('198.51.100.1'));
    const named = { $regex: '^(?!pair|email|network)' };
    expect(await throttles().countDocuments({ _id: named })).toBe(0);
    await setCounts(99, { $regex: '^email:' });
    expect(await statuses('wrong', 1, behind('198.51.100.2'))).toEqual(new Set([401]));
    expect(await statuses(PASSWORD, 1, behind('198.51.100.3'))).toEqual(new Set([429]));
  });
  expect(log).not.toContain(PASSWORD);
});

test('a flood from one network delays neither a browser that signed in before nor other networks', async () => {
  const { email } = await owner();
  const known = findDevice(await signIn({ email, password: PASSWORD }));
  const { byEmail } = service.stores.users;
  const lookUp = gate();
  const refused: number[] = [];
  const find = jest.spyOn(service.stores.users, 'byEmail').mockImplementation(async (each) => {
    if (each === 'stranger@example.com') await lookUp.opened;
    return await byEmail(each);
  });
  try {
    await service.withApp({ config: { TRUSTED_PROXIES: '1' } }, async (url) => {
      const enter = (form: Record<string, string>, address: string, more = {}) => {
        const headers = { 'X-Forwarded-For': address, ...more };
        return fetchPage(url, 'POST', '/dashboard/sign-in', { form, headers });
      };
      const guess = async (address: string, more = {}) => {
        const form = { email: 'stranger@example.com', password: 'wrong' };
        const { status } = await enter(form, address, more);
        if (status === 429) refused.push(status);
        return status;
      };
      const flood = Array.from({ length: 60 }, (_, n) => guess(`2001:db8:1:${n}::1`));
      // One is checked, and five wait; the others are refused without a look-up.
      await eventually('the refusals', async () => refused.length === 54);
      const madeUp = { Cookie: `dashboard_device=${'a'.repeat(43)}` };
      expect(await guess('2001:db8:1:99::1', madeUp)).toBe(429);
      const others = ['203.0.113.1', '203.0.113.2'].map((address) => guess(address));
      expect(find).toHaveBeenCalledTimes(1);
      const right = { email, password: PASSWORD };
      expect((await enter(right, '2001:db8:1:1::1', known)).status).toBe(303);
      lookUp.release();
      expect(await Promise.all(others)).toEqual([401, 401]);
      const statuses = await Promise.all(flood);
      expect(statuses.filter((status) => status === 401)).toHaveLength(6);
      expect((await enter(right, '203.0.113.3')).status).toBe(303);
    });
  } finally {
    lookUp.release();
    find.mockRestore();
  }
});

test('a session cookie planted before sign-in is worthless after it', async () => {
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

test('a session ends without use, and use extends it up to its last moment', async () => {
  const user = await owner();
  const browser = await openVisitor(service, user);
  const soon = new Date(Date.now() + 600_000);
  await setSessions(user._id, { expires_at: soon });
  expect((await browser.get(START)).status).toBe(200);
  const extended = await service.stores.sessions.find(hashSecret(browser.secret), new Date());
  expect(extended?.expires_at.getTime()).toBeGreaterThan(soon.getTime() + 3_600_000);
  await setSessions(user._id, { ends_at: soon, expires_at: new Date(Date.now() + 60_000) });
  await browser.get(START);
  const last = await service.stores.sessions.find(hashSecret(browser.secret), new Date());
  expect(last?.expires_at).toEqual(soon);
  await setSessions(user._id, { expires_at: new Date(Date.now() - 1) });
  expect((await browser.get(START)).status).toBe(303);
});

test('signing out everywhere, or changing the password, ends other sessions', async () => {
  const user = await owner();
  const [here, there] = [await openVisitor(service, user), await openVisitor(service, user)];
  const path = '/dashboard/live/profile';
  await here.confirm(`${path}/password`, { new_password: 'Password1234!' });
  expect((await here.get(path)).html).toContain('known from breaches');
  const typed = 'Zoë’s ﬁrst café'.padEnd(30, 'é');
  const [composed, changed] = [typed.normalize('NFC'), typed.normalize('NFD')];
  const wrong = { password: 'wrong', new_password: changed };
  const { html } = await here.confirm(`${path}/password`, wrong);
  expect(html).toContain('The password is wrong.');
  expect(html).not.toContain(changed);
  await here.confirm(`${path}/password`, { new_password: changed });
  expect((await there.get(path)).status).toBe(303);
  expect((await here.get(path)).status).toBe(200);
  expect((await signIn({ email: user.email, password: PASSWORD })).status).toBe(401);
  // It is right in each Unicode form.
  for (const password of [composed, changed, typed.normalize('NFKC')]) {
    expect((await signIn({ email: user.email, password })).status).toBe(303);
  }
  await here.confirm(`${path}/sign-out-everywhere`);
  expect((await here.get(path)).status).toBe(303);
});

describe('a password set by an operator', () => {
  const PATH = '/dashboard/sign-in/password';

  async function reset(user: UserDocument): Promise<string> {
    const request = { email: user.email, account_id: undefined, dropSecondFactor: false };
    return (await resetPassword(getDeps(), request)) ?? '';
  }

  test('leads only to the page that replaces it', async () => {
    const user = await owner();
    const temporary = await reset(user);
    const entered = await signIn({ email: user.email, password: temporary, next: START });
    const browser = visitor(service.url, entered.cookie ?? '');
    const replacement = `${PATH}?next=${encodeURIComponent(START)}`;
    expect((await browser.get(START)).location).toBe(replacement);
    expect((await browser.confirm('/dashboard/live/api-keys')).location).toBe(PATH);
    for (const [new_password, fault] of [
      ['short', 'Choose 12 to 200 characters.'],
      ['Password1234!', 'known from breaches'],
      [temporary, 'Choose another one than the present'],
    ] as const) {
      const refused = await browser.post(PATH, { new_password });
      expect(refused).toMatchObject({ status: 422, html: expect.stringContaining(fault) });
    }
    const form = { new_password: 'one that only I know', next: START };
    expect((await browser.post(PATH, { ...form, csrf: '' })).status).toBe(403);
    expect((await browser.post(PATH, form)).location).toBe(START);
    expect((await browser.get(START)).status).toBe(200);
    expect((await browser.post(PATH, form)).location).toBe('/dashboard/sandbox/overview');
    expect((await signIn({ email: user.email, password: temporary })).status).toBe(401);
  });

  test('is refused after a day, also when it was used but not replaced', async () => {
    const user = await owner();
    const password = await reset(user);
    const { cookie = '' } = await signIn({ email: user.email, password });
    const { password_expires_at = '' } = (await service.stores.users.get(user._id)) ?? {};
    expect(Date.parse(password_expires_at) - Date.now()).toBeGreaterThan(86_300_000);
    await setUser(user, { password_expires_at: new Date().toISOString() });
    const refused = await signIn({ email: user.email, password });
    expect(refused).toMatchObject({ status: 401, html: expect.stringContaining('has expired') });
    expect((await visitor(service.url, cookie).get(PATH)).status).toBe(200);
  });

  test('is not replaced by a session that the reset ended', async () => {
    const user = await owner();
    const browser = await openVisitor(service, user);
    const temporary = await reset(user);
    const change = { password_hash: 'other', keep: hashSecret(browser.secret) };
    expect(await changePassword(getDeps(), user, change)).toBe(false);
    expect((await signIn({ email: user.email, password: temporary })).status).toBe(303);
  });
});

describe('a second factor', () => {
  async function guarded() {
    const user = await owner();
    return { user, ...(await addSecondFactor(service, user)) };
  }
  const PATH = '/dashboard/sign-in/code';

  async function enterPassword({ email }: UserDocument) {
    const entered = await signIn({ email, password: PASSWORD, next: START });
    expect(entered.location).toBe(`${PATH}?next=${encodeURIComponent(START)}`);
    return visitor(service.url, entered.cookie ?? '');
  }

  test('grants nothing before its code, which works once and begins a new session', async () => {
    const { user, code } = await guarded();
    const browser = await enterPassword(user);
    expect((await browser.get(START)).location).toBe(PATH);
    expect((await browser.post('/dashboard/live/api-keys')).location).toBe(PATH);
    const used = code();
    expect((await browser.post(PATH, { code: used, csrf: '' })).status).toBe(403);
    const entered = await browser.post(PATH, { code: used, next: START });
    expect(entered).toMatchObject({ status: 303, location: START });
    expect((await browser.get(START)).location).toContain('/dashboard/sign-in?');
    expect((await visitor(service.url, entered.cookie ?? '').get(START)).status).toBe(200);
    expect((await (await enterPassword(user)).post(PATH, { code: used })).status).toBe(401);
  });

  test('cannot be guessed: after ten wrong codes, and thirty in a day, the right one waits too', async () => {
    const { user, code } = await guarded();
    const browser = await enterPassword(user);
    const guesses = ['', '000', 'abc', '1234567', 'AAAA-BBBB', '1', '2', '3', '4', '5'];
    const waits: number[] = [];
    for (let quarter = 1; quarter <= 3; quarter += 1) {
      for (const guess of guesses) {
        expect((await browser.post(PATH, { code: guess })).status).toBe(401);
      }
      const refused = await browser.post(PATH, { code: code() });
      expect(refused.status).toBe(429);
      waits.push(Number(refused.headers.get('retry-after')) / 3_600);
      await throttles().deleteMany({ _id: { $regex: '^code:' } });
    }
    expect(waits.map((hours) => hours > 0.25)).toEqual([false, false, true]);
    const refused = await browser.post(PATH, { code: code() });
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(12 * 3_600);
    // A browser that the user has signed in with has as many of its own.
    const device = 'a'.repeat(43);
    await setUser(user, { device_hashes: [hashSecret(device)] });
    const known = (form: Record<string, string>) => {
      const headers = { Cookie: `dashboard=${browser.secret}; dashboard_device=${device}` };
      return fetchPage(service.url, 'POST', PATH, {
        headers,
        form: { csrf: browser.csrf, ...form },
      });
    };
    await known({ code: '1' });
    await setCounts(9, { $regex: '^code:.*:' });
    expect((await known({ code: '1' })).status).toBe(401);
    expect((await known({ code: code() })).status).toBe(429);
    await setCounts(9, { $regex: '^code:.*:' });
    expect((await known({ code: code() })).status).toBe(303);
  });

  test('has recovery codes of 128 bits; earlier ones of 80 bits work too', async () => {
    const { user } = await guarded();
    const codes = makeRecoveryCodes();
    expect(new Set(codes).size).toBe(10);
    for (const code of codes)
      expect(Secret.fromBase32(code.replaceAll('-', '')).bytes).toHaveLength(16);
    const earlier = 'ABCD-EFGH-IJKL-MNOP';
    const hashes = [codes[0] ?? '', earlier].map(hashRecoveryCode);
    await inTransaction(service.mongo, (session) =>
      service.stores.users.setRecovery(user._id, hashes, session),
    );
    for (const [code, status] of [
      [codes[0] ?? '', 303],
      [earlier.toLowerCase(), 303],
      [earlier, 401],
    ] as const) {
      expect((await (await enterPassword(user)).post(PATH, { code })).status).toBe(status);
    }
  });

  test('is confirmed only by the session that was offered its secret, in time, with ten tries, and ends the others', async () => {
    const user = await owner();
    const PROFILE = '/dashboard/live/profile/second-factor';
    const [browser, other] = [await openVisitor(service, user), await openVisitor(service, user)];
    const offer = async () => {
      await browser.confirm(PROFILE);
      const { html } = await browser.get(PROFILE);
      const [, secret = ''] = /<code[^>]*>([A-Z2-7]{32})</.exec(html) ?? [];
      return new TOTP({ secret: Secret.fromBase32(secret) }).generate();
    };
    const confirm = async (by: Visitor, code: string) => {
      const { html } = await by.post(`${PROFILE}/confirm`, { code });
      const { totp = null } = (await service.stores.users.get(user._id)) ?? {};
      expect(html.includes('recovery codes')).toBe(totp !== null);
      return totp !== null;
    };
    const expectEnded = async (ended: Visitor) => {
      expect((await ended.get(START)).location).toContain('/dashboard/sign-in');
      expect((await browser.get(START)).status).toBe(200);
    };
    const code = await offer();
    expect((await other.get(PROFILE)).location).toBe('/dashboard/live/profile');
    expect(await confirm(other, code)).toBe(false);
    await setUser(user, { 'totp_offer.until': new Date() });
    expect((await browser.get(PROFILE)).location).toBe('/dashboard/live/profile');
    expect(await confirm(browser, code)).toBe(false);
    const next = await offer();
    await setCounts(9, { $regex: '^code:' });
    expect(await confirm(browser, '000')).toBe(false);
    expect(await confirm(browser, next)).toBe(false);
    const { html } = await browser.get(PROFILE);
    expect(html).toContain('Too many attempts. Try again in 15 minutes.');
    await throttles().deleteMany();
    const ended = await openVisitor(service, user);
    await ended.post('/dashboard/sign-out');
    const enrollment = { user_id: user._id, session: hashSecret(ended.secret) };
    await offerSecret(getDeps(), enrollment);
    const own = await getOffer(getDeps(), enrollment, { id: '', name: '' });
    const late = new TOTP({ secret: Secret.fromBase32(own?.secret ?? '') }).generate();
    expect(await switchOn(getDeps(), enrollment, late)).toBeNull();
    const last = await offer();
    expect(await confirm(browser, last)).toBe(true);
    await expectEnded(other);
    // The code that switched it on is used up.
    await setUser(user, { 'totp.step': 0 });
    const later = await openVisitor(service, user);
    await browser.confirm(`${PROFILE}/off`, { code: last });
    await expectEnded(later);
  });

  test.each([
    ['a sign-out everywhere', signOutEverywhere],
    ['the end of one session', endOtherSession],
    ['the end of all other sessions', endOtherSessions],
  ] as const)('is not added by a session that %s ends meanwhile', async (_, end) => {
    const user = await owner();
    const thief = hashSecret((await openVisitor(service, user)).secret);
    const enrollment = { user_id: user._id, session: thief };
    await offerSecret(getDeps(), enrollment);
    const offer = await getOffer(getDeps(), enrollment, { id: 'acct_000001', name: 'Shop' });
    const code = new TOTP({ secret: Secret.fromBase32(offer?.secret ?? '') }).generate();
    const { useTotp } = service.stores.users;
    const use = jest.spyOn(service.stores.users, 'useTotp');
    use.mockImplementationOnce(async (...all) => {
      await end(getDeps(), user, end === endOtherSession ? thief : 'own');
      return await useTotp(...all);
    });
    expect(await switchOn(getDeps(), enrollment, code)).toBeNull();
    use.mockRestore();
    expect((await service.stores.users.get(user._id))?.totp).toBeNull();
  });

  test('has an entry in the app that names the merchant and differs for each of them', async () => {
    const name = 'Müller: Söhne & Co'.padEnd(100, '👩');
    const offers = await Promise.all(
      ['acct_000001', 'acct_000002'].map(async (id) => {
        const user = await owner();
        await setUser(user, { email: 'o&m@example.com' });
        const enrollment = { user_id: user._id, session: 'own' };
        await offerSecret(getDeps(), enrollment);
        return new URL((await getOffer(getDeps(), enrollment, { id, name }))?.uri ?? '');
      }),
    );
    for (const uri of offers) expect(uri.searchParams.get('issuer')).toBe('Payments dashboard');
    const labels = offers.map(({ pathname }) =>
      pathname.slice(1).split(':').map(decodeURIComponent),
    );
    const own = /^o&m@example\.com \(Müller Söhne & Co.*, 000001\)$/;
    expect(labels).toMatchObject([
      ['Payments dashboard', expect.stringMatching(own)],
      ['Payments dashboard', expect.stringMatching(/, 000002\)$/)],
    ]);
  });

  test.each([
    ['owner', 'live', false, true],
    ['owner', 'live', true, false],
    ['developer', 'live', false, false],
  ] as const)(
    'the reminder is shown to an %s on %s with a second factor %s: %s',
    async (role, env, hasOne, isDue) => {
      const { account_id } = await service.account();
      const user = await openUser(service.stores, account_id, role);
      if (hasOne) await addSecondFactor(service, user);
      const { html } = await (await openVisitor(service, user)).get(`/dashboard/${env}/team`);
      expect(html.includes('>Add a second factor</a>')).toBe(isDue);
    },
  );

  test('makes a live key with the password and a code, with last day and networks that are valid', async () => {
    const user = await owner();
    const browser = await openVisitor(service, user);
    const path = '/dashboard/live/api-keys';
    const list = () => service.stores.keys.forAccount(user.account_id);
    const before = await list();
    const networks = '203.0.113.0/24, 2001:db8::/32';
    const form = { scope: 'payments:read', last_day: '2999-12-31', networks, once: randomUUID() };
    for (const wrong of [{ last_day: '2020-01-01' }, { networks: '203.0.113.0/99' }]) {
      await browser.confirm(path, { ...form, ...wrong });
      expect((await browser.get(path)).html).toContain('No key was created');
    }
    expect(await list()).toEqual(before);
    const { code } = await addSecondFactor(service, user);
    expect((await browser.post(path, form)).html).not.toContain('sk_live_');
    const made = await browser.confirm(path, { ...form, code: code() });
    const key = /sk_live_[\w-]{43}/.exec(made.html)?.[0] ?? '';
    expect(await service.stores.keys.byHash(hashKey(key))).toMatchObject({
      expires_at: '2999-12-31T23:59:59.999Z',
      allowed_cidrs: ['203.0.113.0/24', '2001:db8::/32'],
    });
  });
});

describe('a passkey', () => {
  const SIGN_IN = '/dashboard/sign-in/passkey';
  const PASSKEYS = '/dashboard/live/profile/passkeys';

  /** Challenge of a browser, with its device cookie. */
  async function ask(Cookie = '', url = service.url) {
    const path = `${SIGN_IN}/challenge`;
    const { status, headers, html } = await fetchPage(url, 'POST', path, { headers: { Cookie } });
    const { Cookie: device } = findDevice({ headers });
    const challenge = /"challenge":"([\w-]+)"/.exec(html)?.[1] ?? '';
    return { status, device, text: html, challenge };
  }

  const enter = (device: string, passkey: string) => {
    const options = { headers: { Cookie: device }, form: { passkey, next: START } };
    return fetchPage(service.url, 'POST', SIGN_IN, options);
  };

  /** Proof by a passkey, of a browser with a session. */
  async function prove(browser: Visitor, use: (challenge: string) => string) {
    const { device, challenge } = await ask();
    const cookies = { Cookie: `dashboard=${browser.secret}; ${device}` };
    return (path: string, form: Record<string, string> = {}) =>
      fetchPage(service.url, 'POST', path, {
        headers: cookies,
        form: { csrf: browser.csrf, confirmed: 'yes', passkey: use(challenge), ...form },
      });
  }

  async function offer(browser: Visitor, form: Record<string, string> = {}): Promise<string> {
    const { html } = await browser.confirm(PASSKEYS, form);
    return /&quot;challenge&quot;:&quot;([\w-]+)&quot;/.exec(html)?.[1] ?? '';
  }

  async function enrolled() {
    const user = await owner();
    const browser = await openVisitor(service, user);
    const site = { rpId: 'localhost', origin: service.url };
    const device = createAuthenticator(site, user._id);
    const form = { passkey: device.create(await offer(browser)), name: 'Phone' };
    const other = await openVisitor(service, user);
    const { html } = await browser.post(`${PASSKEYS}/confirm`, form);
    return { user, browser, other, device, html };
  }

  const stored = async ({ _id }: UserDocument) => await service.stores.users.get(_id);
  const lines = async ({ account_id }: UserDocument) =>
    await service.stores.auditLog.list({ account_id, livemode: true, limit: 10 });

  test('signs in alone, once for each challenge, only in the requesting browser and in time', async () => {
    const { user, browser, other, device, html } = await enrolled();
    expect(html).toMatch(/([A-Z2-7]{4}-){3}[A-Z2-7]{4}/);
    expect((await browser.get(START)).status).toBe(200);
    expect((await other.get(START)).status).toBe(303);
    const { device: cookie, challenge } = await ask();
    const message = device.use(challenge);
    const { device: stranger } = await ask();
    expect((await enter(stranger, message)).status).toBe(401);
    expect((await enter('', message)).status).toBe(401);
    const answer = await enter(cookie, message);
    expect(answer).toMatchObject({ status: 303, location: START });
    expect((await visitor(service.url, answer.cookie ?? '').get(START)).status).toBe(200);
    expect((await enter(cookie, message)).status).toBe(401);
    const [passkey] = (await stored(user))?.passkeys ?? [];
    expect(passkey).toMatchObject({ name: 'Phone', counter: 1, last_used_at: expect.any(String) });
    expect(await lines(user)).toMatchObject([
      { act: 'user.signed_in', after: { by: 'passkey', passkey: passkey?.id } },
      { act: 'passkey.added', target: user._id, after: { passkey: passkey?.id, name: 'Phone' } },
    ]);
    const late = await ask(cookie);
    const expires_at = new Date();
    await service.collection('dashboard_challenges').updateMany({}, { $set: { expires_at } });
    expect((await enter(cookie, device.use(late.challenge))).status).toBe(401);
  });

  test('is required after the password, also once the app is switched off, and only one of this user is accepted', async () => {
    const { user, browser: own, device } = await enrolled();
    const { device: foreign } = await enrolled();
    const { code } = await addSecondFactor(service, user);
    await own.confirm('/dashboard/live/profile/second-factor/off', { code: code() });
    expect(await stored(user)).toMatchObject({ totp: null, recovery_hashes: { length: 10 } });
    const { cookie = '', location } = await signIn({ email: user.email, password: PASSWORD });
    expect(location).toBe('/dashboard/sign-in/code');
    const browser = visitor(service.url, cookie);
    expect((await browser.get(START)).location).toBe(location);
    const wrong = await prove(browser, foreign.use);
    expect((await wrong('/dashboard/sign-in/code')).status).toBe(401);
    const right = await prove(browser, device.use);
    expect((await right('/dashboard/sign-in/code', { next: START })).location).toBe(START);
    expect((await lines(user))[0]).toMatchObject({ after: { by: 'password, passkey' } });
  });

  test('is removed with the password and a proof by itself', async () => {
    const { user, browser, device } = await enrolled();
    const { device: foreign } = await enrolled();
    const other = await openVisitor(service, user);
    const [{ id } = { id: '' }] = (await stored(user))?.passkeys ?? [];
    const path = `${PASSKEYS}/remove`;
    expect((await browser.confirm(path, { id })).html).toContain('Enter a code too.');
    for (const [proof, password] of [
      [await prove(browser, foreign.use), PASSWORD],
      [await prove(browser, device.use), 'wrong'],
    ] as const) {
      expect((await proof(path, { id, password })).status).toBe(403);
    }
    const absent = await prove(browser, device.use);
    const form = { password: PASSWORD };
    expect((await absent(path, { ...form, id: 'passkey_0' })).status).toBe(404);
    expect((await stored(user))?.recovery_hashes).toHaveLength(10);
    const proof = await prove(browser, device.use);
    expect((await proof(path, { ...form, id })).status).toBe(303);
    expect(await stored(user)).toMatchObject({ passkeys: [], recovery_hashes: [] });
    expect((await browser.get(START)).status).toBe(200);
    expect((await other.get(START)).status).toBe(303);
    expect((await lines(user))[0]).toMatchObject({
      act: 'passkey.removed',
      before: { name: 'Phone' },
    });
    const { device: cookie, challenge } = await ask();
    expect((await enter(cookie, device.use(challenge))).status).toBe(401);
    const { location } = await signIn({ email: user.email, password: PASSWORD, next: START });
    expect(location).toBe(START);
  });

  test('is added at most ten times, and only with the challenge of this session', async () => {
    const user = await owner();
    const { code } = await addSecondFactor(service, user);
    const [browser, other] = [await openVisitor(service, user), await openVisitor(service, user)];
    const site = { rpId: 'localhost', origin: service.url };
    const challenge = await offer(browser, { code: code() });
    const create = () => ({ passkey: createAuthenticator(site, user._id).create(challenge) });
    await other.post(`${PASSKEYS}/confirm`, create());
    expect((await stored(user))?.passkeys).toBeUndefined();
    const many = Array.from({ length: 10 }, (_, n) => ({
      ...{ id: `passkey_${n}`, credential_id: `${user._id}-${n}`, public_key: '', counter: 0 },
      ...{ name: `${n}`, created_at: '2026-01-01T00:00:00.000Z', last_used_at: null },
    }));
    await setUser(user, { passkeys: many });
    await browser.post(`${PASSKEYS}/confirm`, create());
    expect((await stored(user))?.passkeys).toHaveLength(10);
    const { html } = await browser.get('/dashboard/live/profile');
    expect(html).toContain('You have 10 passkeys');
    expect(html).not.toContain('>Add a passkey</button>');
  });

  test('gets at most a hundred challenges for strangers of one network', async () => {
    const { email } = await owner();
    const known = findDevice(await signIn({ email, password: PASSWORD }));
    const { device } = await ask();
    await setCounts(100);
    expect(await ask(device)).toMatchObject({
      status: 429,
      text: expect.stringContaining('15 min'),
    });
    expect((await ask(known.Cookie)).status).toBe(200);
  });

  test('needs a domain name: at an IP address the page says so', async () => {
    const config = { PUBLIC_URL: 'http://127.0.0.1:8080' };
    await service.withApp({ config }, async (url) => {
      const { html } = await fetchPage(url, 'GET', '/dashboard/sign-in');
      expect(html).toContain('Passkeys need the dashboard at a domain name');
      expect(html).not.toContain('Use a passkey');
      expect((await ask('', url)).status).toBe(404);
      const browser = visitor(url, (await openVisitor(service, await owner())).secret);
      expect((await browser.confirm(PASSKEYS)).location).toBe('/dashboard/live/profile');
    });
  });
});

test.each(['sandbox/nowhere', 'prod/getting-started', 'x'])('no page is at %s', async (path) => {
  const browser = await openVisitor(service, await owner());
  expect((await browser.get(`/dashboard/${path}`)).status).toBe(404);
});
