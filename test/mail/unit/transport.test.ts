import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createMailer, readSmtpServer } from '../../../src/service/mail/transport';
import { createAuthority } from '../../support/certificates';
import { startSmtpServer } from '../../support/smtp-server';

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
