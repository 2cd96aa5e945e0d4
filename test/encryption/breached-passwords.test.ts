import { isBreachedPassword } from '../../src/encryption/breached-passwords';

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
  ['with a cut surrogate', 'longenough\ud800', false],
])('a password %s: %s', (_what, password, isBreached) => {
  expect(isBreachedPassword(password)).toBe(isBreached);
});
