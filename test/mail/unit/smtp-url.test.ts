import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isSmtpUrl, parseSmtpUrl } from '../../../src/base/smtp-url';
import { readConfig } from '../../../src/config';
import { readSmtpServer } from '../../../src/service/mail/transport';

test('a URL names host, port, login and sender', () => {
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
])('%s is refused', (url) => {
  expect(isSmtpUrl(url)).toBe(false);
});

test('an unusable URL is never quoted', () => {
  const SMTP_URL = 'smtp://user:very-secret@mail.example/path';
  const env = { MONGODB_URI: 'mongodb://localhost', KEYS_FILE: 'a', KEYS_DIR: 'b' };
  expect(() => readConfig({ ...env, SMTP_URL })).toThrow(/SMTP_URL: must be smtps:/);
  expect(() => readConfig({ ...env, SMTP_URL })).not.toThrow(/very-secret/);
});

describe('a file', () => {
  const folder = mkdtempSync(join(tmpdir(), 'smtp-url-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  const write = (name: string, text: string, mode: number) => {
    const path = join(folder, name);
    writeFileSync(path, text, { mode });
    return `file://${path}`;
  };

  test('has the URL, and only its user reads it', () => {
    const url = write('smtp', 'smtp://localhost:1025\n', 0o600);
    expect(isSmtpUrl(url)).toBe(true);
    expect(readSmtpServer(url, false)).toMatchObject({ host: 'localhost', port: 1025 });
    const open = write('open', 'smtp://localhost:1025\n', 0o644);
    expect(() => readSmtpServer(open, false)).toThrow(/Everybody may read/);
  });

  test('with something else is refused, and not quoted', () => {
    const url = write('other', 'very-secret', 0o600);
    expect(() => readSmtpServer(url, false)).toThrow(/SMTP_URL: .*other must be/);
    expect(() => readSmtpServer(url, false)).not.toThrow(/very-secret/);
  });
});
