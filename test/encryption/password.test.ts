import { randomBytes } from 'node:crypto';
import { createEncrypter } from '../../src/encryption/encrypter';
import {
  hashPassword,
  isBreachedPassword,
  isLongEnough,
  isPassword,
} from '../../src/encryption/password';

/** Far more than the pool of Node's own threads takes at once. */
const FLOOD = 24;

test('a flood of passwords does not delay the encryption of a payer', async () => {
  const encrypter = createEncrypter({ current: 'a', keys: { a: randomBytes(32) } });
  const hash = await hashPassword('right');
  expect(await isPassword('right', hash)).toBe(true);
  let compared = 0;
  const flood = Array.from({ length: FLOOD }, async () => {
    expect(await isPassword('wrong', hash)).toBe(false);
    compared += 1;
  });
  // All of them have reached their thread.
  await new Promise(setImmediate);
  await encrypter.encrypt('ada@example.com', 'payment/1');
  expect(compared).toBeLessThan(FLOOD / 2);
  await Promise.all(flood);
});

test.each([
  ['in the list', '1qaz2wsx3edc', true],
  ['in the list, in other letters', 'Administrator', true],
  ['with digits and signs behind', 'Iloveyou-2026!', true],
  ['with digits before', '2026welcome', true],
  ['twice', 'hunter2hunter2', true],
  ['of several words', 'correct horse battery staple', false],
  ['with a word of the list inside', 'my welcome mat', false],
  ['without letters', '7302-9518-4466', false],
  ['of random digits and letters', '9f86d081884c7d659a2f', false],
  ['in full-width letters', '１ｑａｚ２ｗｓｘ３ｅｄｃ', true],
  ['with a cut surrogate', 'longenough\ud800', false],
])('a password %s is breached: %s', (_what, password, isBreached) => {
  expect(isBreachedPassword(password)).toBe(isBreached);
});

test.each([
  ['eleven characters in a decomposed form', 'é'.repeat(11).normalize('NFD'), false],
  ['eleven characters of two units', '👩'.repeat(11), false],
  ['two hundred characters of two units', '👩'.repeat(200), true],
  ['more', '👩'.repeat(201), false],
])('a password of %s has the length to be used: %s', (_what, password, isEnough) => {
  expect(isLongEnough(password)).toBe(isEnough);
});
