import {
  endOfNextBusinessDay,
  executionDay,
  isBusinessDay,
  latestCutOff,
} from '../../src/domain/payout/target2';

/** Good Friday and Easter Monday as the European Central Bank publishes them; month and day. */
const EASTER: Record<number, [friday: string, monday: string]> = {
  2024: ['03-29', '04-01'],
  2025: ['04-18', '04-21'],
  2026: ['04-03', '04-06'],
  2027: ['03-26', '03-29'],
  2028: ['04-14', '04-17'],
  2029: ['03-30', '04-02'],
  2030: ['04-19', '04-22'],
};

const YEARS = Object.keys(EASTER).map(Number);
const FIXED = ['01-01', '05-01', '12-25', '12-26'];

/** Every day of a year, in order. */
function daysOf(year: number): Date[] {
  const days: Date[] = [];
  for (let day = Date.UTC(year, 0, 1); day < Date.UTC(year + 1, 0, 1); day += 86_400_000) {
    days.push(new Date(day));
  }
  return days;
}

function settles(date: Date): boolean {
  return isBusinessDay(date.getTime());
}

test.each(YEARS)('%i: the weekdays on which nothing settles are the known holidays', (year) => {
  const closed = daysOf(year).filter(
    (date) => ![0, 6].includes(date.getUTCDay()) && !settles(date),
  );
  const holidays = [...FIXED, ...(EASTER[year] ?? [])].map((day) => `${year}-${day}`).sort();
  const onWeekdays = holidays.filter((day) => ![0, 6].includes(new Date(day).getUTCDay()));
  expect(closed.map((date) => date.toISOString().slice(0, 10))).toEqual(onWeekdays);
});

test.each(YEARS)('%i: nothing settles on Saturdays and Sundays', (year) => {
  const weekend = daysOf(year).filter((date) => [0, 6].includes(date.getUTCDay()));
  expect(weekend.length).toBeGreaterThanOrEqual(104);
  expect(weekend.filter(settles)).toEqual([]);
});

test.each([
  ['a Tuesday', '2026-06-02T09:00:00.000Z', '2026-06-03T16:00:00.000Z'],
  [
    'the last millisecond of a day in Frankfurt',
    '2026-06-02T21:59:59.999Z',
    '2026-06-03T16:00:00.000Z',
  ],
  [
    'the next day in Frankfurt, the same in UTC',
    '2026-06-02T22:00:00.000Z',
    '2026-06-04T16:00:00.000Z',
  ],
  ['the same in winter', '2026-01-13T22:59:59.999Z', '2026-01-14T17:00:00.000Z'],
  ['one hour on, in winter', '2026-01-13T23:00:00.000Z', '2026-01-15T17:00:00.000Z'],
  ['a Friday evening', '2026-06-05T19:00:00.000Z', '2026-06-08T16:00:00.000Z'],
  ['a Friday after midnight in Frankfurt', '2026-06-05T22:30:00.000Z', '2026-06-08T16:00:00.000Z'],
  ['a Saturday', '2026-06-06T12:00:00.000Z', '2026-06-08T16:00:00.000Z'],
  ['a Sunday', '2026-06-07T12:00:00.000Z', '2026-06-08T16:00:00.000Z'],
  [
    'a Sunday that is a Monday in Frankfurt',
    '2026-06-07T22:00:00.000Z',
    '2026-06-09T16:00:00.000Z',
  ],
  ['Maundy Thursday', '2026-04-02T12:00:00.000Z', '2026-04-07T16:00:00.000Z'],
  ['Good Friday', '2026-04-03T12:00:00.000Z', '2026-04-07T16:00:00.000Z'],
  ['Easter Monday', '2026-04-06T12:00:00.000Z', '2026-04-07T16:00:00.000Z'],
  [
    'Easter in March, and the change to summer time',
    '2027-03-25T12:00:00.000Z',
    '2027-03-30T16:00:00.000Z',
  ],
  ['Easter on 1 April 2024, a Monday', '2024-03-28T12:00:00.000Z', '2024-04-02T16:00:00.000Z'],
  [
    '30 April, before Labour Day on a Friday',
    '2026-04-30T12:00:00.000Z',
    '2026-05-04T16:00:00.000Z',
  ],
  ['the Friday before summer time', '2026-03-27T12:00:00.000Z', '2026-03-30T16:00:00.000Z'],
  ['the Friday before winter time', '2026-10-23T12:00:00.000Z', '2026-10-26T17:00:00.000Z'],
  ['the night to summer time', '2026-03-28T23:30:00.000Z', '2026-03-30T16:00:00.000Z'],
  ['the night to winter time', '2026-10-24T22:30:00.000Z', '2026-10-26T17:00:00.000Z'],
  ['23 December', '2026-12-23T12:00:00.000Z', '2026-12-24T17:00:00.000Z'],
  ['Christmas Eve, a Thursday', '2026-12-24T12:00:00.000Z', '2026-12-28T17:00:00.000Z'],
  ['Christmas Eve, a Tuesday', '2024-12-24T12:00:00.000Z', '2024-12-27T17:00:00.000Z'],
  ["New Year's Eve, a Thursday", '2026-12-31T12:00:00.000Z', '2027-01-04T17:00:00.000Z'],
  [
    "New Year's Eve, already New Year in Frankfurt",
    '2024-12-31T23:30:00.000Z',
    '2025-01-02T17:00:00.000Z',
  ],
])('ordered on %s: due on the next business day at 18:00 in Frankfurt', (_day, ordered, due) => {
  expect(new Date(endOfNextBusinessDay(Date.parse(ordered))).toISOString()).toBe(due);
});

test('whenever it is ordered, it is due later, at 18:00 of a business day, within six days', () => {
  const frankfurt = new Intl.DateTimeFormat('en-CA', {
    timeZone: 'Europe/Berlin',
    dateStyle: 'short',
    timeStyle: 'medium',
    hourCycle: 'h23',
  });
  const step = 7 * 3_600_000 + 13;
  for (let at = Date.UTC(2024, 0, 1); at < Date.UTC(2031, 0, 1); at += step) {
    const due = endOfNextBusinessDay(at);
    expect(due - at).toBeGreaterThan(17 * 3_600_000);
    expect(due - at).toBeLessThan(6 * 86_400_000);
    expect(frankfurt.format(due)).toMatch(/18:00:00$/);
    expect(settles(new Date(due))).toBe(true);
  }
});

describe('cut-offs', () => {
  const AT_15 = 15 * 60;
  const at = (iso: string) => Date.parse(iso);

  test.each([
    ['a moment before', '2026-11-26T13:59:59Z', '2026-11-25T14:00:00Z'],
    ['the moment itself', '2026-11-26T14:00:00Z', '2026-11-26T14:00:00Z'],
    ['a Sunday', '2026-11-29T20:00:00Z', '2026-11-27T14:00:00Z'],
    ['summer time', '2026-07-01T13:30:00Z', '2026-07-01T13:00:00Z'],
    ['Easter Monday', '2026-04-06T18:00:00Z', '2026-04-02T13:00:00Z'],
    ['the night after the clock changed', '2026-10-25T23:30:00Z', '2026-10-23T13:00:00Z'],
  ])('the latest one at %s', (_when, now, cutOff) => {
    expect(new Date(latestCutOff(at(now), AT_15)).toISOString()).toBe(
      new Date(cutOff).toISOString(),
    );
  });

  test.each([
    ['before it', '2026-11-26T09:00:00Z', '2026-11-26'],
    ['29 minutes after it', '2026-11-26T14:29:00Z', '2026-11-26'],
    ['half an hour after it', '2026-11-26T14:30:00Z', '2026-11-27'],
    ['on Friday evening', '2026-11-27T20:00:00Z', '2026-11-30'],
    ['on a Saturday', '2026-11-28T09:00:00Z', '2026-11-30'],
    ['on Christmas Eve in the evening', '2026-12-24T20:00:00Z', '2026-12-28'],
    ['after midnight in Frankfurt', '2026-11-25T23:30:00Z', '2026-11-26'],
  ])('a file that is cut %s asks for the day', (_when, now, day) => {
    expect(executionDay(at(now), AT_15)).toBe(day);
  });
});
