import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isSmtpUrl, parseSmtpUrl } from '../../../src/base/smtp-url';
import { readConfig } from '../../../src/config';
import { type MailSubject, writeMail } from '../../../src/domain/merchants/mail';
import { createMailer, readSmtpServer } from '../../../src/service/merchants/mail/transport';
import { createAuthority } from '../../support/certificates';
import { startSmtpServer } from '../../support/smtp-server';
import { useTempFolder } from '../../unit/temp-folder';

test('an SMTP URL has host, port, login and sender', () => {
  const url = 'smtps://post%40example.com:p%40ss%2F1@mail.example?from=pay@example.com';
  expect(parseSmtpUrl(url)).toEqual({
    ...{ host: 'mail.example', port: 465, secure: true, requireTLS: false },
    ...{ auth: { user: 'post@example.com', pass: 'p@ss/1' }, from: 'pay@example.com' },
  });
});

test.each([
  ['smtp://mail.example', true],
  ['smtp://10.0.0.1:25', true],
  ['smtp://localhost:1025', false],
  ['smtp://127.0.0.1:1025', false],
  ['smtp://[::1]:1025', false],
])('%s requires STARTTLS: %s', (url, requireTLS) => {
  expect(parseSmtpUrl(url)).toMatchObject({ secure: false, requireTLS });
  expect(readSmtpServer(url, true)).toMatchObject({ requireTLS: false });
});

test.each([
  'mail.example',
  'https://mail.example',
  'smtp://',
  'smtp://mail.example/path',
  'smtp://mail.example?tls=no',
  'smtp://mail.example?from=nobody',
  'smtp://mail.example?from=a@example.com%0d%0aBcc:b@example.com',
  'smtp://%zz@mail.example',
  'file://keys/smtp',
])('the SMTP URL %s is refused', (url) => {
  expect(isSmtpUrl(url)).toBe(false);
});

test('a refused SMTP URL is never quoted', () => {
  const SMTP_URL = 'smtp://user:very-secret@mail.example/path';
  const env = { MONGODB_URI: 'mongodb://localhost', KEYS_FILE: 'a', KEYS_DIR: 'b' };
  expect(() => readConfig({ ...env, SMTP_URL })).toThrow(/SMTP_URL: must be smtps:/);
  expect(() => readConfig({ ...env, SMTP_URL })).not.toThrow(/very-secret/);
});

const files = useTempFolder();

test('a file of SMTP_URL has the URL if only its owner may read it, and is never quoted', () => {
  const write = (name: string, text: string, mode = 0o600) =>
    `file://${files.write(name, text, mode)}`;
  const url = write('smtp', 'smtp://localhost:1025\n');
  expect(isSmtpUrl(url)).toBe(true);
  expect(readSmtpServer(url, false)).toMatchObject({ host: 'localhost', port: 1025 });
  const open = write('open', 'smtp://localhost:1025\n', 0o644);
  expect(() => readSmtpServer(open, false)).toThrow(/Everybody may read/);
  const other = write('other', 'very-secret');
  expect(() => readSmtpServer(other, false)).toThrow(/SMTP_URL: .*other must be/);
  expect(() => readSmtpServer(other, false)).not.toThrow(/very-secret/);
});

const FACTS = {
  ...{ merchant: 'Shop', at: '2026-11-23T22:58:59.000Z', link: undefined },
  publicUrl: 'https://pay.example',
};

const SUBJECTS: readonly MailSubject[] = [
  { kind: 'invitation', invitation: 'hash', role: 'finance' },
  { kind: 'signed_in', browser: 'Firefox on Linux', network: '192.0.2.1' },
  { kind: 'password_changed' },
  { kind: 'second_factor_on' },
  { kind: 'second_factor_off' },
  { kind: 'recovery_code_used' },
  { kind: 'passkey_added', name: 'Laptop' },
  { kind: 'passkey_removed', name: 'Laptop' },
  { kind: 'live_key_created', key_id: 'key_1', last4: 'abcd' },
  { kind: 'wallet_set', network: 'bitcoin', address: 'bc1q', counts_from: '2026-11-24' },
  { kind: 'payout_limit_changed', before: '', after: 'EUR=100' },
  { kind: 'changed', act: 'webhook.rolled', about: 'we_1', by: 'key_1 (API)' },
  { kind: 'changed', act: 'brand.changed', about: '', by: 'ada@x.example' },
  {
    kind: 'endpoint_disabled',
    ...{ host: 'https://shop.example', since: '2026-03-01T12:00:00.000Z', livemode: true },
  },
];

test.each(SUBJECTS)(
  'a mail about $kind says what happened, where, when, and what to do',
  (subject) => {
    const { title, text } = writeMail({ ...FACTS, subject, link: 'https://pay.example/link' });
    expect(title).toMatch(/^[A-Z][\w -]+$/);
    expect(text).toMatch(/If (?:it was not you|nobody of your team did it|you expected no)/);
    expect(text).toContain('\nMerchant: Shop\nTime: 2026-11-23 22:58 UTC\n');
    for (const [name, value] of Object.entries(subject)) {
      const isShown = !['kind', 'act', 'invitation', 'role', 'before', 'livemode'].includes(name);
      if (isShown) expect(text).toContain(String(value));
    }
    expect(text).not.toContain('undefined');
  },
);

test('only an invitation contains the link', () => {
  const link = 'https://pay.example/dashboard/invitation/token';
  const texts = SUBJECTS.map((subject) => writeMail({ ...FACTS, subject, link }).text);
  expect(texts.filter((text) => text.includes(link))).toHaveLength(1);
});

test('a mail about an operator does not name them', () => {
  const subject = { kind: 'payout_limit_changed', before: '', after: 'EUR=100' } as const;
  const { text } = writeMail({ ...FACTS, subject });
  expect(text).toContain('Our operators changed');
  expect(text).toContain('Before: none\nNow: EUR=100');
});

test('a name with line breaks adds no line to a mail', () => {
  const subject = { kind: 'passkey_added', name: 'a\r\nb' } as const;
  const { text } = writeMail({ ...FACTS, merchant: 'x\nBcc: y', subject });
  expect(text).toContain('Merchant: x Bcc: y\n');
  expect(text).toContain('new passkey: a b\n');
});

const folder = mkdtempSync(join(tmpdir(), 'mail-'));
afterAll(() => rmSync(folder, { recursive: true }));

const { ca: caFile, sign } = createAuthority(folder);
const certificate = sign('mail');
const ca = readFileSync(caFile);
const publicUrl = 'https://pay.example';
const MAIL = { id: 'mail_1', to: 'ana@example.com', title: 'Grüße', text: 'A line.\n' };

function mailer(url: string, options: { ca?: Buffer; remote?: boolean } = {}) {
  const server = readSmtpServer(url, false);
  if (server === undefined) throw new Error('no server');
  const requireTLS = options.remote === true && !server.secure;
  return createMailer({ ...server, requireTLS }, { publicUrl, ...(options.ca && { ca }) });
}

test.each([
  ['smtps', true],
  ['smtp with STARTTLS', false],
])('the login and the mail are sent only by TLS by %s', async (_, secure) => {
  const server = await startSmtpServer({ certificate, secure });
  await mailer(server.url, { ca, remote: true })(MAIL);
  await server.close();
  expect(server.mails).toMatchObject([{ to: ['ana@example.com'], secure: true }]);
  const [{ text } = { text: '' }] = server.mails;
  expect(text).toContain('From: Payments dashboard <no-reply@pay.example>\r\n');
  expect(text).toContain('To: ana@example.com\r\n');
  expect(text).toContain('Message-ID: <mail_1@pay.example>\r\n');
  expect(text).toContain('Auto-Submitted: auto-generated\r\n');
  expect(text).toContain('A line.');
});

test.each([true, false])(
  'a certificate of an unknown authority is refused (smtps: %s)',
  async (secure) => {
    const server = await startSmtpServer({ certificate, secure });
    const sending = mailer(server.url, { remote: true })(MAIL);
    await expect(sending).rejects.toMatchObject({ name: 'MailFault', isFinal: false });
    await server.close();
    expect(server.mails).toEqual([]);
  },
);

test('a server without STARTTLS gets no mail, unless it is on this machine', async () => {
  const server = await startSmtpServer();
  await expect(mailer(server.url, { remote: true })(MAIL)).rejects.toMatchObject({
    ...{ name: 'MailFault', isFinal: false },
  });
  expect(server.mails).toEqual([]);
  await mailer(server.url)(MAIL);
  await server.close();
  expect(server.mails).toMatchObject([{ secure: false }]);
});

test.each([
  [450, false],
  [550, true],
  [553, true],
  [530, false],
])('a mail to an address that is refused with %i is given up: %s', async (status, isFinal) => {
  const server = await startSmtpServer({ refuse: () => status });
  const sending = mailer(server.url)(MAIL);
  await expect(sending).rejects.toMatchObject({ code: 'EENVELOPE', status, isFinal });
  await server.close();
});

test('a wrong login does not give the mail up, and no fault quotes an address or a secret', async () => {
  const server = await startSmtpServer();
  const url = server.url.replace(/:[^:@/]+@/, ':wrong-secret@');
  const fault: unknown = await mailer(url)(MAIL).catch((error) => error);
  expect(fault).toMatchObject({ code: 'EAUTH', isFinal: false });
  expect(`${fault instanceof Error && fault.message}`).not.toMatch(/wrong-secret|example/);
  await server.close();
  await expect(mailer(server.url)(MAIL)).rejects.toMatchObject({ name: 'MailFault' });
});
