import { randomBytes } from 'node:crypto';
import {
  buildCryptoPageUrl,
  buildRedirectUrl,
  derivePayTokenHash,
  hashPayToken,
} from '../../src/encryption/pay-token';

const BASE = 'https://pay.example';
const key = randomBytes(32);

test('the token in a link is stable, and the payment is found by its hash', () => {
  const url = buildRedirectUrl(BASE, key, 'p1');
  const token = url.replace(`${BASE}/pay/`, '');
  expect(token).toMatch(/^[\w-]{43}$/);
  expect(buildRedirectUrl(BASE, key, 'p1')).toBe(url);
  expect(buildCryptoPageUrl(BASE, key, 'p1')).toBe(`${BASE}/pay/crypto/${token}`);
  expect(derivePayTokenHash(key, 'p1')).toBe(hashPayToken(token));
});

test('another payment and another key have another token', () => {
  const hashes = [
    derivePayTokenHash(key, 'p1'),
    derivePayTokenHash(key, 'p2'),
    derivePayTokenHash(randomBytes(32), 'p1'),
  ];
  expect(new Set(hashes).size).toBe(3);
});
