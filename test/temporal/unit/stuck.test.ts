import { reportsStuck } from '../../../src/domain/stuck';

test('a stuck step is reported after five minutes, then more and more rarely', () => {
  const attempts = Array.from({ length: 600 }, (_, index) => index + 1);
  expect(attempts.filter(reportsStuck)).toEqual([16, 32, 64, 128, 256, 512]);
});
