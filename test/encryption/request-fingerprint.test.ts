import { randomBytes } from 'node:crypto';
import { hashRequest } from '../../src/encryption/request-fingerprint';

const secret = randomBytes(32);
const scope = { account_id: 'acct_1', livemode: false, operation: 'createPayout', key: 'k-1' };
const BODY = '{"amount":1}';

test('a key has one hash per account, environment and operation', () => {
  const { key } = hashRequest(secret, scope, BODY);
  expect(hashRequest(secret, { ...scope }, '{}').key).toBe(key);
  const others = [
    { ...scope, account_id: 'acct_2' },
    { ...scope, livemode: true },
    { ...scope, operation: 'createRefund' },
    { ...scope, key: 'k-2' },
  ].map((other) => hashRequest(secret, other, BODY).key);
  expect(new Set([key, ...others]).size).toBe(5);
});

test('a body has one hash per operation', () => {
  const { body } = hashRequest(secret, scope, BODY);
  expect(hashRequest(secret, { ...scope, key: 'k-2' }, BODY).body).toBe(body);
  expect(hashRequest(secret, scope, '{"amount":2}').body).not.toBe(body);
  expect(hashRequest(secret, { ...scope, operation: 'createRefund' }, BODY).body).not.toBe(body);
});

test('the hashes reveal nothing without the secret', () => {
  const hashes = hashRequest(secret, scope, BODY);
  const others = hashRequest(randomBytes(32), scope, BODY);
  for (const part of ['key', 'body'] as const) {
    expect(hashes[part]).toMatch(/^[\w-]{43}$/);
    expect(others[part]).not.toBe(hashes[part]);
  }
});
