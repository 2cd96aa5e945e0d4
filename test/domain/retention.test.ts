import { monthsBefore, parseRetention, RETENTION } from '../../src/domain/account/retention';

test.each([
  ['2026-11-22T10:00:00.000Z', 13, '2025-10-22T10:00:00.000Z'],
  ['2026-03-31T23:59:59.999Z', 1, '2026-02-28T23:59:59.999Z'],
  ['2028-03-31T00:00:00.000Z', 1, '2028-02-29T00:00:00.000Z'],
  ['2026-01-15T00:00:00.000Z', 120, '2016-01-15T00:00:00.000Z'],
  ['2026-12-31T00:00:00.000Z', 18, '2025-06-30T00:00:00.000Z'],
])('%s less %i months is %s', (now, months, before) => {
  expect(monthsBefore(new Date(now), months).toISOString()).toBe(before);
});

test('the periods that are not named have their defaults', () => {
  expect(RETENTION).toEqual({ recipients: 13, events: 13, dismissed_callbacks: 13 });
  expect(parseRetention('')).toEqual(RETENTION);
  expect(parseRetention('events=24, recipients=1')).toEqual({
    ...RETENTION,
    events: 24,
    recipients: 1,
  });
});

test.each(['events', 'events=0', 'events=121', 'events=1.5', 'payments=13', 'events=1=2'])(
  '"%s" is no period',
  (text) => {
    expect(() => parseRetention(text)).toThrow(
      'takes NAME=MONTHS from 1 to 120, with a NAME of recipients, events, dismissed_callbacks',
    );
  },
);
