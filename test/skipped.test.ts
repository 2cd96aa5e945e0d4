import { explainSkip } from './support/python-tools';

test.each([
  ['without the program', { PATH: '/nowhere' }, 'there is no python3'],
  ['in CI, which must have it', { PATH: '/nowhere', CI: 'true' }, undefined],
])('a test that needs a program says why it is skipped: %s', (_when, env, why) => {
  expect(explainSkip('python3', env)).toBe(why);
});
