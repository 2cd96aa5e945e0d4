import { parseAccent, parseDisplayName } from '../../src/domain/account/brand';

test.each([
  ['  Tulip  &\tSons ', 'Tulip & Sons'],
  ['花'.repeat(60), '花'.repeat(60)],
  ['', undefined],
  [' \n ', undefined],
])('the name %j is shown as %j', (text, value) => {
  expect(parseDisplayName(text)).toEqual({ ok: true, value });
});

test.each([
  ['x'.repeat(61), 'at most 60 characters'],
  ['Shop \u202Egnp', 'invisible'],
  ['Shop\u200B', 'invisible'],
  ['Shop\u0000', 'invisible'],
])('the name %j is refused', (text, fault) => {
  expect(parseDisplayName(text)).toEqual({ ok: false, fault: expect.stringContaining(fault) });
});

test.each([
  ['#FF6600', '#ff6600'],
  [' 0a7c5a ', '#0a7c5a'],
  ['', undefined],
])('the color %j is %j', (text, value) => {
  expect(parseAccent(text)).toEqual({ ok: true, value });
});

test.each(['#fff', 'red', '#ff66001', 'rgb(1,2,3)', '#ff660g', '#ff6600;}', '＃ff6600'])(
  'the color %j is refused',
  (text) => {
    expect(parseAccent(text)).toEqual({ ok: false, fault: expect.stringContaining('#0a7c5a') });
  },
);
