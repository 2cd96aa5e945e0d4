import { monthsBefore } from '../../src/domain/account/retention';

test.each([
  ['2026-11-22T10:00:00.000Z', 13, '2025-10-22T10:00:00.000Z'],
  ['2026-03-31T23:59:59.999Z', 1, '2026-02-28T23:59:59.999Z'],
  ['2028-03-31T00:00:00.000Z', 1, '2028-02-29T00:00:00.000Z'],
  ['2026-01-15T00:00:00.000Z', 120, '2016-01-15T00:00:00.000Z'],
  ['2026-12-31T00:00:00.000Z', 18, '2025-06-30T00:00:00.000Z'],
])('%s less %i months is %s', (now, months, before) => {
  expect(monthsBefore(new Date(now), months).toISOString()).toBe(before);
});
