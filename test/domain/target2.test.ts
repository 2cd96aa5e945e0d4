import {
  addBusinessDays,
  dayInFrankfurt,
  endOfNextBusinessDay,
  executionDay,
  isBusinessDay,
  latestCutOff,
} from '../../src/domain/payout/rails';

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

function listDays(year: number, isWanted: (weekday: number) => boolean): string[] {
  const first = Date.UTC(year, 0, 1);
  const days = Array.from({ length: 366 }, (_, index) => new Date(first + index * 86_400_000));
  return days
    .filter((day) => day.getUTCFullYear() === year && isWanted(day.getUTCDay()))
    .map((day) => day.toISOString().slice(0, 10));
}

const isWeekend = (weekday: number) => weekday === 0 || weekday === 6;
const settles = (date: string) => isBusinessDay(Date.parse(date));

test.each(YEARS)('in %i, payments settle on every weekday but the known holidays', (year) => {
  expect(listDays(year, isWeekend).filter(settles)).toEqual([]);
  const holidays = [...FIXED, ...(EASTER[year] ?? [])].map((day) => `${year}-${day}`).sort();
  const weekdays = listDays(year, (weekday) => !isWeekend(weekday));
  expect(weekdays.filter((day) => !settles(day))).toEqual(
    holidays.filter((day) => weekdays.includes(day)),
  );
});

test.each([
  ['the last moment of a day in Frankfurt', '2026-06-02T21:59:59.999Z', '2026-06-03T16:00Z'],
  ['the next day in Frankfurt, the same in UTC', '2026-06-02T22:00Z', '2026-06-04T16:00Z'],
  ['the same in winter', '2026-01-13T22:59:59.999Z', '2026-01-14T17:00Z'],
  ['one hour later, in winter', '2026-01-13T23:00Z', '2026-01-15T17:00Z'],
])('a payout ordered on %s is due on the next business day at 18:00', (_day, ordered, due) => {
  expect(endOfNextBusinessDay(Date.parse(ordered))).toBe(Date.parse(due));
});

test.each([
  ['a Monday', '2026-10-05T08:00Z', '2026-10-07T08:00Z'],
  ['a Friday', '2026-10-02T13:30Z', '2026-10-06T13:30Z'],
  ['a Saturday', '2026-10-03T10:00Z', '2026-10-06T10:00Z'],
  ['Maundy Thursday', '2026-04-02T10:00Z', '2026-04-08T10:00Z'],
  ['the Friday before winter time', '2026-10-23T10:00Z', '2026-10-27T11:00Z'],
  ['the last hour of a day in Frankfurt', '2026-06-02T21:30Z', '2026-06-04T21:30Z'],
])('two business days after %s come at the same time of day in Frankfurt', (_day, at, then) => {
  expect(addBusinessDays(Date.parse(at), 2)).toBe(Date.parse(then));
});

test.each([
  ['2026-10-03T21:59:59Z', '2026-10-03'],
  ['2026-10-03T22:00:00Z', '2026-10-04'],
  ['2026-12-24T23:00:00Z', '2026-12-25'],
])('at %s the day in Frankfurt is %s, also where TARGET2 is closed', (at, day) => {
  expect(dayInFrankfurt(Date.parse(at))).toBe(day);
});

test('a payout is due at 18:00 of the first business day after its own, whenever it is ordered', () => {
  const frankfurt = new Intl.DateTimeFormat('en-CA', {
    timeZone: 'Europe/Berlin',
    hourCycle: 'h23',
    dateStyle: 'short',
    timeStyle: 'medium',
  });
  const step = 7 * 3_600_000 + 13;
  for (let at = Date.UTC(2024, 0, 1); at < Date.UTC(2031, 0, 1); at += step) {
    let day = Date.parse(frankfurt.format(at).slice(0, 10));
    do day += 86_400_000;
    while (!isBusinessDay(day));
    const due = frankfurt.format(endOfNextBusinessDay(at));
    expect(due).toBe(`${new Date(day).toISOString().slice(0, 10)}, 18:00:00`);
  }
});

describe('the cut-off at 15:00', () => {
  const AT_15 = 15 * 60;

  test.each([
    ['a moment before it', '2026-11-26T13:59:59Z', '2026-11-25T14:00:00Z'],
    ['the moment itself', '2026-11-26T14:00:00Z', '2026-11-26T14:00:00Z'],
    ['a Sunday', '2026-11-29T20:00:00Z', '2026-11-27T14:00:00Z'],
    ['summer time', '2026-07-01T13:30:00Z', '2026-07-01T13:00:00Z'],
    ['Easter Monday', '2026-04-06T18:00:00Z', '2026-04-02T13:00:00Z'],
    ['the night after the clock changed', '2026-10-25T23:30:00Z', '2026-10-23T13:00:00Z'],
  ])('was last passed, at %s, on the latest business day', (_when, now, cutOff) => {
    expect(latestCutOff(Date.parse(now), AT_15)).toBe(Date.parse(cutOff));
  });

  test.each([
    ['before it', '2026-11-26T09:00:00Z', '2026-11-26'],
    ['29 minutes after it', '2026-11-26T14:29:00Z', '2026-11-26'],
    ['half an hour after it', '2026-11-26T14:30:00Z', '2026-11-27'],
    ['on Friday evening', '2026-11-27T20:00:00Z', '2026-11-30'],
    ['on a Saturday', '2026-11-28T09:00:00Z', '2026-11-30'],
    ['on Christmas Eve in the evening', '2026-12-24T20:00:00Z', '2026-12-28'],
    ['after midnight in Frankfurt', '2026-11-25T23:30:00Z', '2026-11-26'],
  ])('gives a file that is written %s its day of execution', (_when, now, day) => {
    expect(executionDay(Date.parse(now), AT_15)).toBe(day);
  });
});
