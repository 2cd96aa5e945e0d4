import { randomBytes } from 'node:crypto';
import {
  buildCryptoPageUrl,
  buildRedirectUrl,
  derivePayTokenHash,
  hashPayToken,
} from '../../src/encryption/pay-token';
import { hashRequest } from '../../src/encryption/request-fingerprint';
import { createSignedSecret, isSignedSecret } from '../../src/pages/browser';

const key = randomBytes(32);

test('a signed secret is recognized with its key, for its use alone, and none that is made up', () => {
  const secret = createSignedSecret(key, 'one');
  expect(secret).toMatch(/^[\w-]{43}$/);
  expect(createSignedSecret(key, 'one')).not.toBe(secret);
  expect(isSignedSecret(key, 'one', secret)).toBe(true);
  expect(isSignedSecret(key, 'two', secret)).toBe(false);
  expect(isSignedSecret(randomBytes(32), 'one', secret)).toBe(false);
  for (const other of ['', 'x', 'a'.repeat(43), randomBytes(32).toString('base64url')]) {
    expect(isSignedSecret(key, 'one', other)).toBe(false);
  }
});

test('the token of a payment page is stable, and its hash finds that payment alone', () => {
  const base = 'https://pay.example';
  const url = buildRedirectUrl(base, key, 'p1');
  const token = url.replace(`${base}/pay/`, '');
  expect(token).toMatch(/^[\w-]{43}$/);
  expect(buildRedirectUrl(base, key, 'p1')).toBe(url);
  expect(buildCryptoPageUrl(base, key, 'p1')).toBe(`${base}/pay/crypto/${token}`);
  const hash = derivePayTokenHash(key, 'p1');
  expect(hash).toBe(hashPayToken(token));
  expect(derivePayTokenHash(key, 'p2')).not.toBe(hash);
  expect(derivePayTokenHash(randomBytes(32), 'p1')).not.toBe(hash);
});

test('the fingerprint of a request has a key for its scope, a body for each text, and needs the secret', () => {
  const scope = { account_id: 'acct_1', livemode: false, operation: 'createPayout', key: 'k-1' };
  const body = '{"amount":1}';
  const hashes = hashRequest(key, scope, body);
  const refund = { operation: 'createRefund' };
  expect(hashRequest(key, { ...scope }, '{}').key).toBe(hashes.key);
  for (const change of [{ account_id: 'acct_2' }, { livemode: true }, refund, { key: 'k-2' }]) {
    expect(hashRequest(key, { ...scope, ...change }, body).key).not.toBe(hashes.key);
  }
  expect(hashRequest(key, { ...scope, key: 'k-2' }, body).body).toBe(hashes.body);
  expect(hashRequest(key, scope, '{"amount":2}').body).not.toBe(hashes.body);
  expect(hashRequest(key, { ...scope, ...refund }, body).body).not.toBe(hashes.body);
  const other = hashRequest(randomBytes(32), scope, body);
  for (const part of ['key', 'body'] as const) {
    expect(hashes[part]).toMatch(/^[\w-]{43}$/);
    expect(other[part]).not.toBe(hashes[part]);
  }
});
