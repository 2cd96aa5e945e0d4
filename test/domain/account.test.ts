import { parseAccent, parseDisplayName } from '../../src/domain/merchants/brand';
import { monthsBefore, parseRetention, RETENTION } from '../../src/domain/operators/retention';

test.each([
  [parseDisplayName, '  Tulip  &\tSons ', 'Tulip & Sons'],
  [parseDisplayName, '花'.repeat(60), '花'.repeat(60)],
  [parseDisplayName, '', undefined],
  [parseDisplayName, ' \n ', undefined],
  [parseAccent, '#FF6600', '#ff6600'],
  [parseAccent, ' 0a7c5a ', '#0a7c5a'],
  [parseAccent, '', undefined],
])('%p reads %j as %j', (parse, text, value) => {
  expect(parse(text)).toEqual({ ok: true, value });
});

test.each([
  [parseDisplayName, 'at most 60 characters', ['x'.repeat(61)]],
  [parseDisplayName, 'invisible', ['Shop \u202Egnp', 'Shop\u200B', 'Shop\u0000']],
  [parseAccent, '#0a7c5a', ['#fff', 'red', '#ff66001', 'rgb(1,2,3)', '#ff660g', '#ff6600;}']],
  [parseAccent, '#0a7c5a', ['＃ff6600']],
])('%p refuses with a message that says "%s" each of %j', (parse, fault, texts) => {
  const refused = { ok: false, fault: expect.stringContaining(fault) };
  expect(texts.map(parse)).toEqual(texts.map(() => refused));
});

test.each([
  ['2026-11-22T10:00:00.000Z', 13, '2025-10-22T10:00:00.000Z'],
  ['2026-03-31T23:59:59.999Z', 1, '2026-02-28T23:59:59.999Z'],
  ['2028-03-31T00:00:00.000Z', 1, '2028-02-29T00:00:00.000Z'],
  ['2026-01-15T00:00:00.000Z', 120, '2016-01-15T00:00:00.000Z'],
  ['2026-12-31T00:00:00.000Z', 18, '2025-06-30T00:00:00.000Z'],
])('%s minus %i months is %s', (now, months, before) => {
  expect(monthsBefore(new Date(now), months).toISOString()).toBe(before);
});

test('a retention period that is not named has its default', () => {
  expect(RETENTION).toEqual({ recipients: 13, events: 13, dismissed_callbacks: 13 });
  expect(parseRetention('')).toEqual(RETENTION);
  const named = { ...RETENTION, events: 24, recipients: 1 };
  expect(parseRetention('events=24, recipients=1')).toEqual(named);
});

test.each(['events', 'events=0', 'events=121', 'events=1.5', 'payments=13', 'events=1=2'])(
  '"%s" is no retention period',
  (text) =>
    expect(() => parseRetention(text)).toThrow(
      'takes NAME=MONTHS from 1 to 120, with a NAME of recipients, events, dismissed_callbacks',
    ),
);
