import fc from 'fast-check';
import {
  ATTEMPTS_MAX,
  attemptOffsetMs,
  FIRST_WAIT_MS,
  JITTER_MAX_MS,
  nextAttemptDelayMs,
} from '../../src/domain/events/delivery';
import { EVENT_TYPES, firstDeliveryStatus, type Subscriber } from '../../src/domain/events/event';

const OTHERS = EVENT_TYPES.filter((type) => type !== 'payment.settled');
const FIRST_AT = 1_770_000_000_000;
/** Time that all attempts must fit into, as merchants are promised it. */
const WINDOW_MS = 24 * 60 * 60 * 1_000;
const ATTEMPT_MS_MAX = 30_000;
const STARTS = Array.from({ length: ATTEMPTS_MAX }, (_, index) => attemptOffsetMs(index + 1));

test('a webhook has twelve attempts: at once, then after waits that double from 42 s, well within 24 h', () => {
  expect(STARTS.map((ms) => ms / 1_000)).toEqual([
    0, 42, 126, 294, 630, 1_302, 2_646, 5_334, 10_710, 21_462, 42_966, 85_974,
  ]);
  // Slow answers and jitter have some minutes.
  expect(WINDOW_MS - (STARTS.at(-1) ?? 0)).toBe(426_000);
  for (const attempt of [0, 13, 1.5, Number.NaN]) {
    expect(() => attemptOffsetMs(attempt)).toThrow(RangeError);
  }
});

test('Retry-After can delay an attempt by an even share of the time left, never advance it', () => {
  const third = { attempt: 3, firstAtMs: FIRST_AT, nowMs: FIRST_AT + 126_000, jitter: 0 };
  expect(nextAttemptDelayMs({ ...third, retryAfterMs: 1_000 })).toBe(168_000);
  expect(nextAttemptDelayMs({ ...third, retryAfterMs: 600_000 })).toBe(600_000);
  const first = { attempt: 1, firstAtMs: FIRST_AT, nowMs: FIRST_AT, jitter: 0 };
  const longest = nextAttemptDelayMs({ ...first, retryAfterMs: 10 * WINDOW_MS });
  expect(longest).toBe(Math.round((STARTS.at(-1) ?? 0) / 11));
});

test('the attempts left after an outage of the service follow a second apart', () => {
  const nowMs = FIRST_AT + 2 * WINDOW_MS;
  expect(nextAttemptDelayMs({ attempt: 10, firstAtMs: FIRST_AT, nowMs, jitter: 1 })).toBe(1_000);
});

/** Delays by a receiver and by chance in each of the eleven waits. */
const failures = fc.array(
  fc.record({
    tookMs: fc.integer({ min: 0, max: ATTEMPT_MS_MAX }),
    jitter: fc.double({ min: 0, max: 1, noNaN: true }),
    retryAfterMs: fc.option(fc.integer({ min: 0, max: 3 * WINDOW_MS }), { nil: undefined }),
  }),
  { minLength: ATTEMPTS_MAX - 1, maxLength: ATTEMPTS_MAX - 1 },
);

function play(story: { tookMs: number; jitter: number; retryAfterMs: number | undefined }[]) {
  const starts = [0];
  for (const [index, { tookMs, jitter, retryAfterMs }] of story.entries()) {
    const nowMs = (starts.at(-1) ?? 0) + tookMs;
    const failed = { attempt: index + 1, firstAtMs: 0, nowMs, retryAfterMs, jitter };
    starts.push(nowMs + nextAttemptDelayMs(failed));
  }
  return starts;
}

test('all twelve attempts start within 24 h, none before its offset, and each is late by Retry-After, where time is left, or by some jitter', () => {
  fc.assert(
    fc.property(failures, (story) => {
      const starts = play(story);
      expect(starts).toHaveLength(ATTEMPTS_MAX);
      for (const [index, start] of starts.entries()) {
        expect(start).toBeGreaterThanOrEqual(STARTS[index] ?? Number.NaN);
        expect(start).toBeLessThanOrEqual(WINDOW_MS);
      }
      for (const [index, { tookMs, retryAfterMs = 0 }] of story.entries()) {
        const failedAt = (starts[index] ?? 0) + tookMs;
        const share = ((STARTS.at(-1) ?? 0) - failedAt) / (ATTEMPTS_MAX - 1 - index);
        const waited = (starts[index + 1] ?? 0) - failedAt;
        expect(waited).toBeGreaterThanOrEqual(Math.floor(Math.min(retryAfterMs, share)));
      }
      const plain = story.map(({ tookMs, ...failure }) => {
        return { ...failure, tookMs: Math.floor(tookMs / 3), retryAfterMs: undefined };
      });
      for (const [index, start] of play(plain).entries()) {
        const late = start - (STARTS[index] ?? Number.NaN);
        const wait = FIRST_WAIT_MS * 2 ** (index - 1);
        expect(late).toBeGreaterThanOrEqual(0);
        expect(late).toBeLessThanOrEqual(Math.min(wait / 20, JITTER_MAX_MS) + 1);
      }
    }),
    { numRuns: 500 },
  );
});

test.each<[Omit<Subscriber, 'endpoint_id'>, string]>([
  [{ wants: 'all', isDisabled: false }, 'pending'],
  [{ wants: ['payment.settled'], isDisabled: false }, 'pending'],
  [{ wants: [], isDisabled: false }, 'not_subscribed'],
  [{ wants: OTHERS, isDisabled: false }, 'not_subscribed'],
  [{ wants: 'all', isDisabled: true }, 'disabled'],
])('an event for the endpoint %j is %s', (subscriber, status) => {
  expect(firstDeliveryStatus(subscriber, 'payment.settled')).toBe(status);
});
