import { hashSecret } from '../../src/pages/browser';
import { createStores } from '../../src/store';
import { CACHE_MS } from '../../src/store/cache';
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

const PROFILE = '/dashboard/live/profile';
const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';

const service = useService();

async function owner(): Promise<UserDocument> {
  const { account_id } = await service.account();
  return await openUser(service.stores, account_id);
}

async function signIn({ email }: UserDocument, userAgent: string): Promise<Visitor> {
  const form = { email, password: PASSWORD };
  const headers = { 'User-Agent': userAgent };
  const { cookie = '' } = await fetchPage(service.url, 'POST', '/dashboard/sign-in', {
    form,
    headers,
  });
  return visitor(service.url, cookie);
}

const PAYMENTS = '/dashboard/sandbox/payments';

test('slow pages of one merchant leave connections to the others', async () => {
  const [ours, theirs] = [await owner(), await owner()];
  const [slowVisitor, otherVisitor] = [
    await openVisitor(service, ours),
    await openVisitor(service, theirs),
  ];
  const { list } = service.stores.payments;
  const slow = gate();
  const read = jest.spyOn(service.stores.payments, 'list').mockImplementation(async (filter) => {
    if (filter.account_id === ours.account_id) await slow.opened;
    return await list(filter);
  });
  try {
    await service.withApp({}, async (url) => {
      const show = (secret: string) => visitor(url, secret).get(PAYMENTS);
      const pages = Array.from({ length: 8 }, () => show(slowVisitor.secret));
      await eventually('the pages to wait', async () => read.mock.calls.length === 5);
      expect((await show(otherVisitor.secret)).status).toBe(200);
      expect(read).toHaveBeenCalledTimes(6);
      slow.release();
      expect((await Promise.all(pages)).map(({ status }) => status)).toEqual(Array(8).fill(200));
    });
  } finally {
    slow.release();
    read.mockRestore();
  }
});

test('the counts of the overview are at most ten seconds old', async () => {
  const stores = createStores(service.db, CACHE_MS);
  const read = jest.spyOn(stores.payments, 'settledByDay');
  const { secret } = await openVisitor(service, await owner());
  // Whole: sums of fractions may be short of ten seconds.
  let at = Math.ceil(performance.now());
  const clock = jest.spyOn(performance, 'now').mockImplementation(() => at);
  try {
    await service.withApp({ stores }, async (url) => {
      for (const [ms, reads] of [
        [0, 1],
        [9_999, 1],
        [1, 2],
      ] as const) {
        at += ms;
        const { status } = await visitor(url, secret).get('/dashboard/sandbox/overview');
        expect([status, read.mock.calls.length]).toEqual([200, reads]);
      }
    });
  } finally {
    clock.mockRestore();
  }
});

const listRows = (html: string) =>
  [...html.matchAll(/<tr>.*?<\/tr>/gs)].map(([row]) => row).filter((row) => row.includes('UTC'));

const audited = async (account_id: string) =>
  (await service.stores.auditLog.list({ account_id, livemode: false, limit: 2 })).map(
    ({ act, before }) => ({ act, before }),
  );

const isSignedIn = async (browser: Visitor) => (await browser.get(PROFILE)).status === 200;

test('the profile lists each session with browser, network, start and last use, and marks its own', async () => {
  const user = await owner();
  const here = await signIn(user, FIREFOX);
  await signIn(user, 'something <b>else</b>');
  const earlier = await openVisitor(service, user);
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
  const others = rows.filter((row) => row.includes('End session'));
  expect(others).toHaveLength(2);
  for (const row of others) expect(row).toContain('Unknown browser');
  expect(rows.at(-1)).toContain('2026-01-02 03:04:05 UTC');
  expect(html).not.toContain('something');
  await earlier.get(PROFILE);
  expect((await here.get(PROFILE)).html).not.toContain('2026-01-02 03:04:05 UTC');
});

test('only its user ends a session, with a line in the audit log', async () => {
  const [user, stranger] = [await owner(), await owner()];
  const [here, other] = [await openVisitor(service, user), await signIn(user, FIREFOX)];
  const form = { session: hashSecret(other.secret) };
  await (await openVisitor(service, stranger)).post(`${PROFILE}/sessions/end`, form);
  expect(await isSignedIn(other)).toBe(true);
  await here.post(`${PROFILE}/sessions/end`, form);
  expect([await isSignedIn(other), await isSignedIn(here)]).toEqual([false, true]);
  const [line] = await audited(user.account_id);
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

test('all other sessions end at once, and a repeat adds no audit line', async () => {
  const user = await owner();
  const here = await openVisitor(service, user);
  const others = [await openVisitor(service, user), await openVisitor(service, user)];
  expect((await here.get(PROFILE)).html).toContain('End all other sessions');
  for (let time = 1; time <= 2; time += 1) await here.post(`${PROFILE}/sessions/end-others`);
  expect(await Promise.all([here, ...others].map(isSignedIn))).toEqual([true, false, false]);
  const lines = await audited(user.account_id);
  expect(lines.filter(({ act }) => act === 'user.other_sessions_ended')).toEqual([
    { act: 'user.other_sessions_ended', before: { sessions: 2 } },
  ]);
  expect((await here.get(PROFILE)).html).not.toContain('End all other sessions');
});
