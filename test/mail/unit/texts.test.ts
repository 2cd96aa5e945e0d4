import { type MailSubject, writeMail } from '../../../src/domain/account/mail';

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
      const isShown = !['kind', 'invitation', 'role', 'before', 'livemode'].includes(name);
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
