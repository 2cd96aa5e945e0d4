import { randomBytes } from 'node:crypto';
import {
  buildCryptoPageUrl,
  buildRedirectUrl,
  derivePayTokenHash,
  hashPayToken,
} from '../../src/encryption/pay-token';
import { hashRequest } from '../../src/encryption/request-fingerprint';
import { createSignedSecret, isSignedSecret } from '../../src/encryption/signed-secret';

const key = randomBytes(32);

describe('a signed secret', () => {
  test('is recognized with its key, for its use alone', () => {
    const secret = createSignedSecret(key, 'one');
    expect(secret).toMatch(/^[\w-]{43}$/);
    expect(createSignedSecret(key, 'one')).not.toBe(secret);
    expect(isSignedSecret(key, 'one', secret)).toBe(true);
    expect(isSignedSecret(key, 'two', secret)).toBe(false);
    expect(isSignedSecret(randomBytes(32), 'one', secret)).toBe(false);
  });

  test.each(['', 'x', 'a'.repeat(43), randomBytes(32).toString('base64url')])(
    'is not recognized when it is made up: %j',
    (secret) => expect(isSignedSecret(key, 'one', secret)).toBe(false),
  );
});

describe('the token of a payment page', () => {
  const BASE = 'https://pay.example';

  test('is stable, and its hash finds the payment', () => {
    const url = buildRedirectUrl(BASE, key, 'p1');
    const token = url.replace(`${BASE}/pay/`, '');
    expect(token).toMatch(/^[\w-]{43}$/);
    expect(buildRedirectUrl(BASE, key, 'p1')).toBe(url);
    expect(buildCryptoPageUrl(BASE, key, 'p1')).toBe(`${BASE}/pay/crypto/${token}`);
    expect(derivePayTokenHash(key, 'p1')).toBe(hashPayToken(token));
  });

  test('differs for another payment and for another key', () => {
    const hash = derivePayTokenHash(key, 'p1');
    expect(derivePayTokenHash(key, 'p2')).not.toBe(hash);
    expect(derivePayTokenHash(randomBytes(32), 'p1')).not.toBe(hash);
  });
});

describe('the fingerprint of a request', () => {
  const scope = { account_id: 'acct_1', livemode: false, operation: 'createPayout', key: 'k-1' };
  const BODY = '{"amount":1}';
  const hashes = hashRequest(key, scope, BODY);

  test('has the same key for the same account, environment, operation and key', () => {
    expect(hashRequest(key, { ...scope }, '{}').key).toBe(hashes.key);
  });

  test.each([
    { account_id: 'acct_2' },
    { livemode: true },
    { operation: 'createRefund' },
    { key: 'k-2' },
  ])('has another key for %j', (change) => {
    expect(hashRequest(key, { ...scope, ...change }, BODY).key).not.toBe(hashes.key);
  });

  test('has one body for each text and operation', () => {
    expect(hashRequest(key, { ...scope, key: 'k-2' }, BODY).body).toBe(hashes.body);
    expect(hashRequest(key, scope, '{"amount":2}').body).not.toBe(hashes.body);
    const refund = { ...scope, operation: 'createRefund' };
    expect(hashRequest(key, refund, BODY).body).not.toBe(hashes.body);
  });

  test.each(['key', 'body'] as const)('cannot be computed without the secret: %s', (part) => {
    expect(hashes[part]).toMatch(/^[\w-]{43}$/);
    expect(hashRequest(randomBytes(32), scope, BODY)[part]).not.toBe(hashes[part]);
  });
});
