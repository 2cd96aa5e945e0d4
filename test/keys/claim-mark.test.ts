import { createHmac, randomBytes } from 'node:crypto';
import { FIRST_KEY } from '../../src/config';
import { claimKeyHash, claimKeyHashes, claimMark, isOfBody } from '../../src/keys/claim-mark';
import { constantRing } from '../../src/keys/ring';

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

describe('a ring of fingerprint keys', () => {
  const [first, second] = [randomBytes(32), randomBytes(32)];
  const alone = constantRing({ current: FIRST_KEY, keys: { [FIRST_KEY]: first } });
  const rotated = constantRing({ current: 'k2', keys: { [FIRST_KEY]: first, k2: second } });
  const retired = constantRing({ current: 'k2', keys: { k2: second } });

  test('marks with its first key as before there were rings', () => {
    const { key, body } = claimMark(alone, claim, '{"amount":1}');
    expect(key).toBe(claimKeyHash(first, claim));
    const before = createHmac('sha256', first).update('createPayout\n{"amount":1}');
    expect(body).toBe(before.digest('base64url'));
  });

  test('knows a body that an earlier key marked, until that is retired', () => {
    const { body } = claimMark(alone, claim, '{"amount":1}');
    expect(isOfBody(rotated, claim, '{"amount":1}', body)).toBe(true);
    expect(isOfBody(rotated, claim, '{"amount":2}', body)).toBe(false);
    expect(isOfBody(retired, claim, '{"amount":1}', body)).toBe(false);
    const next = claimMark(rotated, claim, '{"amount":1}');
    expect(next.body).toMatch(/^k2:[\w-]{43}$/);
    expect(isOfBody(rotated, claim, '{"amount":1}', next.body)).toBe(true);
    expect(isOfBody(alone, claim, '{"amount":1}', next.body)).toBe(false);
    expect(isOfBody(alone, claim, '{"amount":1}', '')).toBe(false);
  });

  test('finds a claim that was rebuilt under any of its keys', () => {
    const hashes = claimKeyHashes(rotated, claim);
    expect(hashes).toEqual([claimKeyHash(first, claim), claimKeyHash(second, claim)]);
    expect(claimMark(rotated, claim, '{}').key).toBe(hashes[1]);
  });
});
