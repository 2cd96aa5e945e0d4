import { Secret, TOTP } from 'otpauth';
import type { Page } from 'playwright-core';
import { resetPassword } from '../../src/service/merchants/team/sessions';
import { openUser, openVisitor, PASSWORD } from '../support/dashboard';
import { useFixture } from '../support/fixture';
import { call } from '../support/http';
import { buildPng } from '../support/images';
import { useService } from '../support/service';
import { enter, look, pressWithPassword, SIZES, useBrowser } from './dashboard-visit';

const service = useService();
const browser = useBrowser();
const owner = useFixture(async () => {
  const { account_id } = await service.account();
  return await openUser(service.stores, account_id);
});

/** Signs a new owner in. */
async function join() {
  const { account_id } = await service.account();
  const user = await openUser(service.stores, account_id);
  const context = await browser.newContext({ viewport: SIZES.desktop });
  return { user, context, page: await enter(context, service.url, user) };
}

const follow = (page: Page, name: string) =>
  page.getByRole('navigation', { name: 'Dashboard' }).getByRole('link', { name }).click();
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();

test('the owner signs in, makes a key that works, and revokes it', async () => {
  const context = await browser.newContext({ viewport: SIZES.desktop });
  const page = await context.newPage();
  await page.goto(`${service.url}/dashboard/sign-in`);
  await look(page, 'sign-in', { isFrame: true });
  await page.close();
  const home = await enter(context, service.url, owner);
  await follow(home, 'Getting started');
  await look(home, 'getting-started');
  await follow(home, 'API keys');
  await home.getByLabel('payouts:write').uncheck();
  await press(home, 'Create key');
  await look(home, 'key-shown-once');
  const key = (await home.locator('code').textContent()) ?? '';
  expect((await call(service.url, 'GET', '/v1/payments', { key })).status).toBe(200);
  await follow(home, 'API keys');
  expect(await home.content()).not.toContain(key);
  await look(home, 'api-keys');
  const row = home.getByRole('row').filter({ hasText: key.slice(-4) });
  await row.getByRole('button', { name: 'Revoke' }).click();
  await look(home, 'asks-once-more');
  await press(home, 'Revoke');
  await home.getByText('The key is revoked.').waitFor();
  expect((await call(service.url, 'GET', '/v1/payments', { key })).status).toBe(401);
  await context.close();
});

test('an invited team member joins by the link once and sees what the role allows', async () => {
  const context = await browser.newContext({ viewport: SIZES.desktop });
  const page = await enter(context, service.url, owner);
  await follow(page, 'Team');
  await page.getByLabel('E-mail').fill('fin@example.com');
  await page.getByLabel('Role', { exact: true }).selectOption('finance');
  await page.getByLabel('Password').fill(PASSWORD);
  await press(page, 'Invite');
  await look(page, 'invitation-link');
  const link = (await page.locator('code').textContent()) ?? '';

  const guest = await (await browser.newContext()).newPage();
  await guest.goto(link);
  await look(guest, 'join');
  await guest.getByLabel('Password').fill('a long enough password');
  await press(guest, 'Join');
  await guest.waitForURL(/\/dashboard\/sandbox/);
  await follow(guest, 'API keys');
  expect(await guest.getByRole('button', { name: 'Create key' }).count()).toBe(0);
  expect((await guest.goto(link))?.status()).toBe(410);
  await look(guest, 'link-over');

  await follow(page, 'Team');
  await look(page, 'team');
  const row = page.getByRole('row').filter({ hasText: 'fin@example.com' });
  await row.getByRole('button', { name: 'Remove' }).click();
  await look(page, 'password-again');
  await page.getByLabel('Password').fill(PASSWORD);
  await press(page, 'Remove');
  await page.getByText('The member is removed.').waitFor();
  await guest.goto(`${service.url}/dashboard/sandbox/team`);
  await guest.waitForURL(/sign-in/);
  await follow(page, 'Audit log');
  for (const words of ['Team member invited', 'Team member joined', 'Team member removed']) {
    await page.getByRole('cell', { name: words }).first().waitFor();
  }
  await look(page, 'audit-log');
  for (const each of [page, guest]) await each.context().close();
});

test('the owner changes the live brand with the password, and chooses the logo again after a wrong one', async () => {
  const context = await browser.newContext({ viewport: SIZES.desktop });
  const page = await enter(context, service.url, owner);
  await page.goto(`${service.url}/dashboard/live/brand`);
  await page.getByLabel('Display name').fill('Tulip');
  await pressWithPassword(page, 'Save brand');
  await page.getByText('The brand is saved.').waitFor();
  await look(page, 'brand-live');
  const logo = { name: 'logo.png', mimeType: 'image/png', buffer: buildPng(600, 150) };
  await page.getByLabel('Image').setInputFiles(logo);
  await page.getByLabel('Password').fill('wrong');
  await press(page, 'Upload logo');
  await look(page, 'brand-asks-again');
  await page.getByLabel('Image').setInputFiles(logo);
  await page.getByLabel('Password').fill(PASSWORD);
  await press(page, 'Upload logo');
  await page.getByText('The logo is saved.').waitFor();
  await context.close();
});

test('a second factor guards sign-in, and a recovery code replaces it', async () => {
  const { user, context, page } = await join();
  await openVisitor(service, user);
  await page.getByRole('link', { name: user.email }).click();
  await page.getByText('This browser').waitFor();
  await page.getByRole('button', { name: 'End session' }).waitFor();
  await look(page, 'profile');
  await press(page, 'End all other sessions');
  await page.getByText('All your other sessions are ended.').waitFor();
  await pressWithPassword(page, 'Set up');
  await look(page, 'second-factor');
  const secret = Secret.fromBase32((await page.locator('code').textContent()) ?? '');
  const code = () => new TOTP({ secret }).generate();
  await page.getByLabel('Code').fill(code());
  await press(page, 'Switch on');
  const recovery = ((await page.locator('pre').textContent()) ?? '').split('\n');
  await look(page, 'recovery-codes');
  await press(page, 'Sign out');

  const again = await enter(context, service.url, user);
  await look(again, 'sign-in-code');
  // The code that switched it on is used up.
  await again.getByLabel('Code').fill(recovery[0] ?? '');
  await press(again, 'Continue');
  await again.waitForURL(/\/dashboard\/sandbox/);
  await press(again, 'Sign out');
  const third = await enter(context, service.url, user);
  await third.getByLabel('Code').fill(recovery[0] ?? '');
  await press(third, 'Continue');
  await third.getByText('The code is wrong').waitFor();
  await context.close();
});

test('a password that an operator set is replaced before anything else is shown', async () => {
  const { account_id } = await service.account();
  const { email } = await openUser(service.stores, account_id);
  const deps = { ...service, now: () => new Date(), audit: async () => {} };
  const reset = { email, account_id, dropSecondFactor: false };
  const password = (await resetPassword(deps, reset)) ?? '';
  const context = await browser.newContext({ viewport: SIZES.desktop });
  const page = await enter(context, service.url, { email, password });
  await page.getByRole('heading', { name: 'Choose a new password' }).waitFor();
  await page.getByLabel('New password').fill('Password1234!');
  await press(page, 'Save password');
  await look(page, 'new-password');
  await page.getByLabel('New password').fill('one that only I know');
  await press(page, 'Save password');
  await page.waitForURL('**/dashboard/sandbox/overview');
  await context.close();
});

test('a passkey is added, completes a password, signs in alone, and is removed', async () => {
  const { user, context, page } = await join();
  const device = await context.newCDPSession(page);
  await device.send('WebAuthn.enable');
  await device.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      ...{ protocol: 'ctap2', transport: 'internal', hasResidentKey: true },
      ...{ hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true },
    },
  });
  const openProfile = () => page.getByRole('link', { name: user.email }).click();
  await openProfile();
  await pressWithPassword(page, 'Add a passkey');
  await page.getByLabel('Name').fill('Work laptop');
  await look(page, 'passkey-create');
  await press(page, 'Create passkey');
  await page.getByRole('heading', { name: 'Your recovery codes' }).waitFor();
  await page.getByRole('link', { name: 'I have kept them' }).click();
  await page.getByRole('heading', { name: 'Passkeys' }).waitFor();
  await look(page, 'passkeys');
  await pressWithPassword(page, 'Add a passkey', 'Use a passkey');
  await press(page, 'Create passkey');
  await page.getByText('This device has one of your passkeys already.').waitFor();
  await press(page, 'Sign out');

  await page.getByLabel('E-mail').fill(user.email);
  await page.getByLabel('Password').fill(PASSWORD);
  await press(page, 'Sign in');
  await page.waitForURL(/sign-in.code/);
  await look(page, 'sign-in-passkey');
  await press(page, 'Use a passkey');
  await page.waitForURL(/dashboard.sandbox/);
  await press(page, 'Sign out');
  await press(page, 'Use a passkey');
  await page.waitForURL(/dashboard.sandbox/);

  await openProfile();
  const row = page.getByRole('row').filter({ hasText: 'Work laptop' });
  await row.getByRole('button', { name: 'Remove' }).click();
  await look(page, 'passkey-remove');
  await page.getByLabel('Password').fill(PASSWORD);
  await press(page, 'Use a passkey');
  await page.getByText('The passkey is removed.').waitFor();
  await press(page, 'Sign out');
  await press(page, 'Use a passkey');
  await page.getByText('This passkey was not accepted.').waitFor();
  await context.close();
});

test('sign-in and keys work without JavaScript', async () => {
  const context = await browser.newContext({ javaScriptEnabled: false });
  const page = await enter(context, service.url, owner);
  await follow(page, 'API keys');
  await press(page, 'Create key');
  expect(await page.locator('code').textContent()).toMatch(/^sk_sandbox_/);
  await press(page, 'Sign out');
  await page.waitForURL(/sign-in/);
  await context.close();
});
