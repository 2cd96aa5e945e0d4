import { parseRetryAfter } from '../../src/webhooks/post-result';

const NOW = Date.parse('2026-03-01T12:00:00.000Z');

test.each([
  ['120', 120],
  ['0', 0],
  [' 7 ', 7],
  ['Sun, 01 Mar 2026 12:01:30 GMT', 90],
  ['Sun, 01 Mar 2026 11:00:00 GMT', 0],
])('%p asks for %i seconds', (header, seconds) => {
  expect(parseRetryAfter(header, NOW)).toBe(seconds);
});

test.each([
  undefined,
  '',
  '-1',
  '1.5',
  '1e9',
  '9999999999',
  'soon',
  '2026-03-01',
  'Sun, 99 Mar 2026 99:00:00 GMT',
])('%p asks for nothing', (header) => expect(parseRetryAfter(header, NOW)).toBeUndefined());
