import { isSmtpUrl, parseSmtpUrl } from '../../../src/base/smtp-url';
import { readConfig } from '../../../src/config';
import { readSmtpServer } from '../../../src/service/mail/transport';
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

describe('a file of SMTP_URL', () => {
  const folder = useTempFolder();

  test('has the URL if only its owner may read it', () => {
    const url = `file://${folder.write('smtp', 'smtp://localhost:1025\n', 0o600)}`;
    expect(isSmtpUrl(url)).toBe(true);
    expect(readSmtpServer(url, false)).toMatchObject({ host: 'localhost', port: 1025 });
    const open = `file://${folder.write('open', 'smtp://localhost:1025\n', 0o644)}`;
    expect(() => readSmtpServer(open, false)).toThrow(/Everybody may read/);
  });

  test('with anything else is refused, and not quoted', () => {
    const url = `file://${folder.write('other', 'very-secret', 0o600)}`;
    expect(() => readSmtpServer(url, false)).toThrow(/SMTP_URL: .*other must be/);
    expect(() => readSmtpServer(url, false)).not.toThrow(/very-secret/);
  });
});
