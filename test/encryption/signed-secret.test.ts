import { randomBytes } from 'node:crypto';
import { createSignedSecret, isSignedSecret } from '../../src/encryption/signed-secret';

const key = randomBytes(32);

test('a secret is recognized by the holder of its key, for its use alone', () => {
  const secret = createSignedSecret(key, 'one');
  expect(secret).toMatch(/^[\w-]{43}$/);
  expect(createSignedSecret(key, 'one')).not.toBe(secret);
  expect(isSignedSecret(key, 'one', secret)).toBe(true);
  expect(isSignedSecret(key, 'two', secret)).toBe(false);
  expect(isSignedSecret(randomBytes(32), 'one', secret)).toBe(false);
});

test.each(['', 'x', 'a'.repeat(43), randomBytes(32).toString('base64url')])(
  'a made-up one is not: %j',
  (secret) => {
    expect(isSignedSecret(key, 'one', secret)).toBe(false);
  },
);
