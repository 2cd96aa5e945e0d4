import fc from 'fast-check';
import {
  buildPosition,
  findUncutRange,
  parseCreatedBefore,
  parsePosition,
} from '../../src/domain/cursor';

const FIRST_MS = Date.parse('0001-01-01T00:00:00.000Z');
const LAST_MS = Date.parse('9999-12-31T23:59:59.999Z');

const moment = fc.oneof(
  fc.integer({ min: FIRST_MS, max: LAST_MS }),
  fc.integer({ min: Date.UTC(2026, 0, 1), max: Date.UTC(2027, 0, 1) }),
);
const tie = fc.oneof(fc.integer({ min: 0, max: 999_999 }), fc.integer({ min: 0, max: 3 }));

describe('the position of a row', () => {
  test.each([
    [Date.UTC(2026, 1, 28, 9, 5, 7, 8), 42, '2026-02-28T09:05:07.008000042Z'],
    [0, 0, '1970-01-01T00:00:00.000000000Z'],
    [LAST_MS, 999_999, '9999-12-31T23:59:59.999999999Z'],
  ])('of %d ms ends with its tie %d as six more digits', (ms, last, position) => {
    expect(buildPosition(ms, last)).toBe(position);
  });

  test('sorts as text as it does in time', () => {
    const order = <T extends number | string>(a: T, b: T) =>
      Math.sign(Number(a > b) - Number(a < b));
    fc.assert(
      fc.property(moment, tie, moment, tie, (leftMs, leftTie, rightMs, rightTie) => {
        const left = buildPosition(leftMs, leftTie);
        const inTime = order(leftMs, rightMs) || order(leftTie, rightTie);
        expect(order(left, buildPosition(rightMs, rightTie))).toBe(inTime);
        const twin = buildPosition(leftMs, rightTie);
        expect(order(left, twin)).toBe(order(leftTie, rightTie));
      }),
    );
  });

  test('is refused for a tie or a time without a place', () => {
    for (const last of [-1, 1_000_000, 0.5])
      expect(() => buildPosition(0, last)).toThrow(RangeError);
    for (const ms of [0.5, Number.NaN, FIRST_MS - 1, LAST_MS + 1]) {
      expect(() => buildPosition(ms, 0)).toThrow(RangeError);
    }
  });
});

describe('created_before', () => {
  test.each([
    ['2026-03-01T12:00:00Z', '2026-03-01T12:00:00.000000000Z'],
    ['2026-03-01t12:00:00z', '2026-03-01T12:00:00.000000000Z'],
    ['2026-03-01T12:00:00.1Z', '2026-03-01T12:00:00.100000000Z'],
    ['2026-03-01T12:00:00,25Z', '2026-03-01T12:00:00.250000000Z'],
    ['2026-03-01T00:30:00.999999999+05:45', '2026-02-28T18:45:00.999999999Z'],
    ['2026-03-01T12:00Z', '2026-03-01T12:00:00.000000000Z'],
    ['2026-03-01T12:00+02:00', '2026-03-01T10:00:00.000000000Z'],
    ['2026-01-01T00:00:00+0130', '2025-12-31T22:30:00.000000000Z'],
    ['2026-01-01T00:00:00.5-01', '2026-01-01T01:00:00.500000000Z'],
    ['2026-03-01T00:30:00 02:00', '2026-02-28T22:30:00.000000000Z'],
    ['2026-03-01T12:00:00-00:00', '2026-03-01T12:00:00.000000000Z'],
    ['0099-01-01T00:00:00Z', '0099-01-01T00:00:00.000000000Z'],
    ['0000-12-31T23:30:00-01:00', '0001-01-01T00:30:00.000000000Z'],
    ['9999-12-31T23:59:59.999999999Z', '9999-12-31T23:59:59.999999999Z'],
  ])('reads %s as %s', (text, position) => expect(parsePosition(text)).toBe(position));

  test.each([
    ['a text that is no time', ['', 'now', '1767225600', '2026-W01-1T00:00:00Z']],
    ['a time without its offset', ['2026-03-01', '2026-03-01T12:00:00', '2026-03-01T12:00']],
    ['a time that is cut off', ['2026-03-01T12Z', '2026-03-01T12:00.5Z', '2026-03-01T12:00:00.Z']],
    ['more than nine digits', ['2026-03-01T12:00:00.1234567890Z', '20260101T000000Z']],
    ['spaces', ['2026-03-01 12:00:00Z', '2026-01-01T00:00:00Z\n', ' 2026-01-01T00:00:00Z']],
    ['the hour 24', ['2026-01-01T24:00:00Z']],
    ['a leap second', ['2026-01-01T00:60:00Z', '2026-12-31T23:59:60Z']],
    ['an offset over a day', ['2026-01-01T00:00:00+24:00', '2026-01-01T00:00:00+00:60']],
    ['half an offset', ['2026-01-01T00:00:00+1', '2026-01-01T00:00:00+01:']],
    ['an offset of 24 hours and two', ['2026-01-01T00:00:00+24', '2026-01-01T00:00:00ZZ']],
    ['the year 0', ['0000-06-01T00:00:00Z', '0001-01-01T00:30:00+01:00']],
    ['the year 10000', ['9999-12-31T23:30:00-01:00', '+02026-01-01T00:00:00Z']],
    ['full-width digits', ['２026-01-01T00:00:00Z']],
  ])('refuses %s', (_, texts) => {
    expect(texts.filter((text) => parseCreatedBefore(text) !== undefined)).toEqual([]);
  });

  test('is the same moment under every offset', () => {
    const minutes = fc.integer({ min: -(24 * 60 - 1), max: 24 * 60 - 1 });
    const dayMs = 86_400_000;
    const inside = fc.integer({ min: FIRST_MS + dayMs, max: LAST_MS - dayMs });
    fc.assert(
      fc.property(inside, tie, minutes, (ms, last, offset) => {
        const local = buildPosition(ms + offset * 60_000, last).slice(0, -1);
        const pad = (number: number) => String(number).padStart(2, '0');
        const [hours, rest] = [Math.floor(Math.abs(offset) / 60), Math.abs(offset) % 60];
        const shifted = `${local}${offset < 0 ? '-' : '+'}${pad(hours)}:${pad(rest)}`;
        const position = buildPosition(ms, last);
        expect([position, shifted].map(parsePosition)).toEqual([position, position]);
      }),
    );
  });

  test('that is cut may have been each cursor that begins with its digits, and no other', () => {
    const check = (ms: number, last: number, other: number, digits: number) => {
      const position = buildPosition(ms, last);
      const next = buildPosition(Math.min(ms + 1, LAST_MS), 0);
      const stem = position.slice(0, 'YYYY-MM-DDTHH:mm:ss.'.length + digits);
      const time = parseCreatedBefore(`${stem.replace(/\.$/, '')}Z`) ?? '';
      const range = findUncutRange(time);
      for (const each of [position, buildPosition(other, last), next]) {
        const mayBeCut = digits < 4 || each !== parsePosition(time);
        const isInside = range !== undefined && each > range.after && each < range.until;
        const isCut = digits < 9 && each.startsWith(stem) && mayBeCut;
        expect([each, time, isInside]).toEqual([each, time, isCut]);
      }
    };
    fc.assert(fc.property(moment, tie, moment, fc.nat(9), check));
  });

  test('may name a day exactly when the calendar has it', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 9999 }), fc.nat(14), fc.nat(33), (year, month, day) => {
        const date = `${String(year).padStart(4, '0')}-${String(month).padStart(2, '0')}`;
        const text = `${date}-${String(day).padStart(2, '0')}T00:00:00Z`;
        const real = new Date(0);
        real.setUTCFullYear(year, month - 1, day);
        const exists = real.getUTCMonth() === month - 1 && real.getUTCDate() === day;
        expect(parseCreatedBefore(text) !== undefined).toBe(exists);
      }),
      { numRuns: 2_000 },
    );
  });
});
