import { CLOCK_MS_MAX } from '../../../src/domain/merchants/clock';
import {
  type ClockRequest,
  parseDuration,
  planAdvance,
} from '../../../src/domain/merchants/clock-request';

const NOW = new Date('2026-03-01T12:00:00Z');
const HOUR_MS = 3_600_000;

test.each<[string, number | undefined]>([
  ['P1D', 24 * HOUR_MS],
  ['P2DT3H', 51 * HOUR_MS],
  ['PT90M', 1.5 * HOUR_MS],
  ...['P1M', 'P1Y', 'P', 'PT', 'P1DT', '1D', 'P-1D', 'P1.5D', 'P1D ', 'PT1S1M', ''].map(
    (text): [string, undefined] => [text, undefined],
  ),
])('the duration "%s" is %p ms', (text, ms) => expect(parseDuration(text)).toBe(ms));

test.each<[ClockRequest, number, { field: string } | number]>([
  [{ by_ms: HOUR_MS }, 0, HOUR_MS],
  [{ to: '2026-03-01T13:00:00Z' }, 0, HOUR_MS],
  [{ to: '2026-03-01T15:00:00+01:00' }, HOUR_MS, 2 * HOUR_MS],
  [{ to: '2026-03-01T13:00:00Z' }, HOUR_MS, { field: 'to' }],
  [{ to: '2020-01-01T00:00:00Z' }, 0, { field: 'to' }],
  [{ by_ms: 0 }, 0, { field: 'advance' }],
  [{ by_ms: CLOCK_MS_MAX }, 0, CLOCK_MS_MAX],
  [{ by_ms: CLOCK_MS_MAX }, 1, { field: 'advance' }],
])('an advance by %j of a clock that is %i ms ahead is planned as %p', (request, ahead, plan) => {
  const at = typeof plan === 'number' && new Date(NOW.getTime() + plan).toISOString();
  const expected = at === false ? plan : { offset_ms: plan, at };
  expect(planAdvance(request, { offset_ms: ahead }, NOW)).toMatchObject(Object(expected));
});
