import { Secret, TOTP } from 'otpauth';
import type { Page } from 'playwright-core';
import { resetPassword } from '../../src/service/merchants/team/sessions';
import { openUser, openVisitor, PASSWORD } from '../support/dashboard';
import { useFixture } from '../support/fixture';
import { buildPng } from '../support/images';
import { useService } from '../support/service';
import { enter, look, PROOF, SIZES, useBrowser, walk } from './dashboard-visit';

const service = useService();
const browser = useBrowser();
const owner = useFixture(async () => {
  const { account_id } = await service.account();
  return await openUser(service.stores, account_id);
});

/** Signs a user in, by default a new owner. */
async function join(user?: typeof owner) {
  const { account_id } = await service.account();
  const known = user ?? (await openUser(service.stores, account_id));
  const context = await browser.newContext({ viewport: SIZES.desktop });
  return { user: known, context, page: await enter(context, service.url, known) };
}

const press = (page: Page, name: string) => walk(page, [name]);
const readCode = async (page: Page) => (await page.locator('code').textContent()) ?? '';

/** Presses a button in the row of a table that has a text. */
const pressIn = (page: Page, hasText: string, name: string) =>
  page.getByRole('row').filter({ hasText }).getByRole('button', { name }).click();

test('the owner signs in, makes a key that is shown once, and revokes it', async () => {
  const { page, context } = await join(owner);
  const out = await (await browser.newContext()).newPage();
  await out.goto(`${service.url}/dashboard/sign-in`);
  await look(out, 'sign-in', { isFrame: true });
  await out.context().close();
  await walk(
    page,
    ['Getting started', {}, 'steps are done in', 'getting-started'],
    ['API keys'],
    ['Create key', { 'payouts:write': false }, 'Your new API key', 'key-shown-once'],
  );
  const key = await readCode(page);
  await walk(page, ['API keys', {}, key.slice(-4), 'api-keys']);
  expect(await page.content()).not.toContain(key);
  await pressIn(page, key.slice(-4), 'Revoke');
  await page.getByText('Requests with this key are refused').waitFor();
  await look(page, 'asks-once-more');
  await walk(page, ['Revoke', {}, 'The key is revoked.']);
  await context.close();
});

test('an invited team member joins by the link once and sees what the role allows', async () => {
  const { page } = await join(owner);
  const invitation = { 'E-mail': 'fin@example.com', Role: 'finance', ...PROOF };
  await walk(page, ['Team'], ['Invite', invitation, 'The invitation', 'invitation-link']);
  const link = await readCode(page);

  const guest = await (await browser.newContext()).newPage();
  await guest.goto(link);
  await look(guest, 'join');
  await walk(guest, ['Join', { Password: 'a long enough password' }]);
  await guest.waitForURL(/\/dashboard\/sandbox/);
  await walk(guest, ['API keys', {}, 'Your server sends a key']);
  expect(await guest.getByRole('button', { name: 'Create key' }).count()).toBe(0);
  expect((await guest.goto(link))?.status()).toBe(410);
  await look(guest, 'link-over');

  await walk(page, ['Team', {}, 'fin@example.com', 'team']);
  await pressIn(page, 'fin@example.com', 'Remove');
  await page.getByText('They are signed out everywhere').waitFor();
  await look(page, 'password-again');
  await walk(page, ['Remove', PROOF, 'The member is removed.']);
  await guest.goto(`${service.url}/dashboard/sandbox/team`);
  await guest.waitForURL(/sign-in/);
  await press(page, 'Audit log');
  for (const words of ['Team member invited', 'Team member joined', 'Team member removed']) {
    await page.getByRole('cell', { name: words }).first().waitFor();
  }
  await look(page, 'audit-log');
  for (const each of [page, guest]) await each.context().close();
});

test('the owner changes the live brand with the password, and chooses the logo again after a wrong one', async () => {
  const { page, context } = await join(owner);
  await walk(
    page,
    ['/dashboard/live/brand'],
    ['Save brand', { 'Display name': 'Tulip' }],
    ['Save brand', PROOF, 'The brand is saved.', 'brand-live'],
  );
  const logo = { name: 'logo.png', mimeType: 'image/png', buffer: buildPng(600, 150) };
  const upload = async (Password: string, words: string) => {
    await page.getByLabel('Image').setInputFiles(logo);
    await walk(page, ['Upload logo', { Password }, words]);
  };
  await upload('wrong', 'The password is wrong.');
  await look(page, 'brand-asks-again');
  await upload(PASSWORD, 'The logo is saved.');
  await context.close();
});

test('a second factor guards sign-in, and a recovery code replaces it', async () => {
  const { user, context, page } = await join();
  await openVisitor(service, user);
  await page.getByRole('link', { name: user.email }).click();
  await page.getByText('This browser').waitFor();
  await page.getByRole('button', { name: 'End session' }).waitFor();
  await look(page, 'profile');
  await walk(
    page,
    ['End all other sessions', {}, 'All your other sessions are ended.'],
    ['Set up'],
    ['Set up', PROOF, 'Scan this with your app', 'second-factor'],
  );
  const secret = Secret.fromBase32(await readCode(page));
  const code = new TOTP({ secret }).generate();
  await walk(page, ['Switch on', { Code: code }, 'Your recovery codes', 'recovery-codes']);
  const [recovery = ''] = ((await page.locator('pre').textContent()) ?? '').split('\n');
  await press(page, 'Sign out');
  const again = await enter(context, service.url, user);
  await look(again, 'sign-in-code');
  await walk(again, ['Continue', { Code: recovery }]);
  await again.waitForURL(/\/dashboard\/sandbox/);
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
  const breached = { 'New password': 'Password1234!' };
  await walk(
    page,
    ['Save password', breached, 'known from breaches', 'new-password'],
    ['Save password', { 'New password': 'one that only I know' }],
  );
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
  const usePasskey = async () => {
    await press(page, 'Use a passkey');
    await page.waitForURL(/dashboard.sandbox/);
  };
  const openProfile = () => page.getByRole('link', { name: user.email }).click();
  await openProfile();
  await walk(page, ['Add a passkey'], ['Add a passkey', PROOF, 'Such as the device']);
  await page.getByLabel('Name').fill('Work laptop');
  await look(page, 'passkey-create');
  await walk(
    page,
    ['Create passkey', {}, 'Your recovery codes'],
    ['I have kept them', {}, 'Work laptop', 'passkeys'],
    ['Add a passkey'],
    ['Use a passkey', PROOF],
    ['Create passkey', {}, 'This device has one of your passkeys already.'],
    ['Sign out'],
    ['Sign in', { 'E-mail': user.email, ...PROOF }],
  );
  await page.waitForURL(/sign-in.code/);
  await look(page, 'sign-in-passkey');
  await usePasskey();
  await press(page, 'Sign out');
  await usePasskey();

  await openProfile();
  await pressIn(page, 'Work laptop', 'Remove');
  await page.getByText('It no longer signs you in').waitFor();
  await look(page, 'passkey-remove');
  await walk(
    page,
    ['Use a passkey', PROOF, 'The passkey is removed.'],
    ['Sign out'],
    ['Use a passkey', {}, 'This passkey was not accepted.'],
  );
  await context.close();
});

test('sign-in and keys work without JavaScript', async () => {
  const context = await browser.newContext({ javaScriptEnabled: false });
  const page = await enter(context, service.url, owner);
  await walk(page, ['API keys'], ['Create key', {}, 'Your new API key']);
  expect(await readCode(page)).toMatch(/^sk_sandbox_/);
  await press(page, 'Sign out');
  await page.waitForURL(/sign-in/);
  await context.close();
});
