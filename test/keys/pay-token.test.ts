import { createHmac, randomBytes } from 'node:crypto';
import { FIRST_KEY } from '../../src/config';
import {
  isTokenKept,
  newTokenHash,
  payTokenHash,
  redirectUrl,
  tokenKey,
} from '../../src/keys/pay-token';
import { constantRing } from '../../src/keys/ring';

const [first, second] = [randomBytes(32), randomBytes(32)];
const alone = constantRing({ current: FIRST_KEY, keys: { [FIRST_KEY]: first } });
const rotated = constantRing({ current: 'k2', keys: { [FIRST_KEY]: first, k2: second } });
const retired = constantRing({ current: 'k2', keys: { k2: second } });
const [old, young] = [{ _id: 'p1' }, { _id: 'p1', token_kid: 'k2' }];
const tokenIn = (url: string) => url.replace('https://pay.example/pay/', '');

test('a payment names the key of its link, unless it is the first one', () => {
  expect(tokenKey(alone)).toEqual({});
  expect(tokenKey(rotated)).toEqual({ token_kid: 'k2' });
});

test('the link of the first key is as it was before there were rings', () => {
  const token = createHmac('sha256', first).update('pay:p1').digest('base64url');
  for (const ring of [alone, rotated]) {
    expect(redirectUrl('https://pay.example', ring, old)).toBe(`https://pay.example/pay/${token}`);
    expect(newTokenHash(ring, old)).toBe(payTokenHash(token));
  }
});

test('each payment keeps its link through a rotation, and it is found by its hash', () => {
  const url = redirectUrl('https://pay.example', rotated, young);
  expect(url).not.toBe(redirectUrl('https://pay.example', rotated, old));
  expect(payTokenHash(tokenIn(url))).toBe(newTokenHash(rotated, young));
});

test('links of a key that was retired lead nowhere, and none is made with it', () => {
  expect([isTokenKept(rotated, old), isTokenKept(retired, old)]).toEqual([true, false]);
  expect(isTokenKept(retired, young)).toBe(true);
  const url = redirectUrl('https://pay.example', retired, old);
  expect(url).not.toBe(redirectUrl('https://pay.example', rotated, old));
  expect(() => newTokenHash(retired, old)).toThrow('no key "first" for links');
  expect(() => newTokenHash(alone, young)).toThrow('no key "k2" for links');
});
