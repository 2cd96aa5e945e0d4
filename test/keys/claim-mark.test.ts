import { randomBytes } from 'node:crypto';
import { claimKeyHash } from '../../src/keys/claim-mark';

const secret = randomBytes(32);
const claim = { account_id: 'acct_1', livemode: false, operation: 'createPayout', key: 'k-1' };

test('a key has one hash per account, environment and operation', () => {
  const hash = claimKeyHash(secret, claim);
  expect(claimKeyHash(secret, { ...claim })).toBe(hash);
  const others = [
    { ...claim, account_id: 'acct_2' },
    { ...claim, livemode: true },
    { ...claim, operation: 'createRefund' },
    { ...claim, key: 'k-2' },
  ].map((other) => claimKeyHash(secret, other));
  expect(new Set([hash, ...others]).size).toBe(5);
});

test('a hash says nothing without the secret', () => {
  const hash = claimKeyHash(secret, claim);
  expect(hash).toMatch(/^[\w-]{43}$/);
  expect(claimKeyHash(randomBytes(32), claim)).not.toBe(hash);
});
