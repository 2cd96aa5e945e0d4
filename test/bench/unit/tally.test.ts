import { joinDelays, measureDelays, tally } from '../../../bench/outpost/tally';

const receipts = new Map([
  ['a', [110]],
  ['b', [130, 190]],
  ['c', [120, 125, 900]],
  ['other', [5_000]],
]);

test('an event that never arrived is lost, and one that arrived again is doubled once', () => {
  const result = tally(['a', 'b', 'c', 'd'], receipts);
  expect(result).toEqual({ events: 4, lost: 1, doubled: 2, lastAt: 130 });
});

test('the last arrival is the latest of the first ones', () => {
  expect(tally(['c', 'a'], receipts).lastAt).toBe(120);
});

test('without any arrival there is no last one', () => {
  expect(tally(['d'], receipts)).toEqual({ events: 1, lost: 1, doubled: 0, lastAt: null });
});

test('a delay lasts from the start of the publish to the first arrival', () => {
  const starts = new Map([
    ['a', 100],
    ['c', 50],
  ]);
  expect(measureDelays(starts, receipts)).toEqual([10, 70]);
  expect(() => measureDelays(new Map([['d', 1]]), receipts)).toThrow('Event d did not arrive.');
});

test('percentiles are of all rounds together', () => {
  expect(joinDelays([[1, 2], [9], [3]])).toEqual({ p50: 2, p95: 9, p99: 9 });
});
