import { ask, openUser, PASSWORD, signedIn, visitor } from '../support/dashboard';
import { type Service, startService } from '../support/service';

let service: Service;

beforeAll(async () => {
  service = await startService({ worker: false });
});
afterAll(() => service?.stop());

async function owner() {
  const { account_id } = await service.account();
  return await openUser(service.stores, account_id);
}

const signIn = (form: Record<string, string>) =>
  ask(service.url, 'POST', '/dashboard/sign-in', { form });

test('a right password leads to the page that was asked for, until sign-out', async () => {
  const { email } = await owner();
  const start = '/dashboard/live/getting-started';
  const turned = await ask(service.url, 'GET', start);
  expect(turned.location).toBe(`/dashboard/sign-in?next=${encodeURIComponent(start)}`);
  const entered = await signIn({ email: email.toUpperCase(), password: PASSWORD, next: start });
  expect(entered).toMatchObject({ status: 303, location: start });
  const browser = visitor(service.url, entered.cookie ?? '');
  expect((await browser.get(start)).html).toContain('Test Shop');
  expect((await browser.post('/dashboard/sign-out')).location).toBe('/dashboard/sign-in');
  expect((await browser.get(start)).status).toBe(303);
});

test('a wrong password and an unknown e-mail are answered alike', async () => {
  const { email } = await owner();
  const words = async (given: string) => {
    const { status, html } = await signIn({ email: given, password: 'wrong' });
    return { status, html: html.replace(given, '') };
  };
  expect(await words(email)).toEqual(await words('nobody@example.com'));
});

test('a form without the token of the session is refused', async () => {
  const browser = await signedIn(service, await owner());
  expect(await browser.post('/dashboard/sign-out', { csrf: 'x' })).toMatchObject({ status: 403 });
  expect((await browser.get('/dashboard/sandbox/getting-started')).status).toBe(200);
});

test.each(['/dashboard/sandbox/nowhere', '/dashboard/prod/getting-started', '/dashboard/x'])(
  '%s is no page',
  async (path) => {
    const browser = await signedIn(service, await owner());
    const { status, headers } = await browser.get(path);
    expect(status).toBe(404);
    expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
  },
);
