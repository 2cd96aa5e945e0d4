import {
  type Admission,
  createEndpointLimits,
  type EndpointLimits,
} from '../../src/webhooks/endpoint-limits';
import type { PostResult } from '../../src/webhooks/post-result';

const SLOTS = 200;
const OK: PostResult = { outcome: 'response', status: 200, excerpt: '', durationMs: 20 };
const SLOW: PostResult = { ...OK, durationMs: 9_000 };
const FAULTY: PostResult = { ...OK, status: 500 };
const HUNG: PostResult = { outcome: 'error', kind: 'timeout', message: '', durationMs: 10_000 };
const NO_NAME: PostResult = { outcome: 'error', kind: 'dns', message: '', durationMs: 0 };

let nowMs: number;
let limits: EndpointLimits;
beforeEach(() => {
  nowMs = 0;
  const now = () => nowMs;
  limits = createEndpointLimits({ slots: SLOTS, promptSlots: 50, now, random: () => 0.5 });
});

/** Admits as many attempts as the limits allow, none of which ends. */
function fill(owner: string): Extract<Admission, { admitted: true }>[] {
  const entered = [];
  for (;;) {
    const admission = limits.admit(owner);
    if (!admission.admitted) return entered;
    entered.push(admission);
  }
}

function attempt(owner: string, ...results: PostResult[]): void {
  for (const result of results) {
    const admission = limits.admit(owner);
    if (!admission.admitted) throw new Error('It was not admitted.');
    admission.leave(result);
  }
}

/** Seconds that each of so many refused attempts has to wait. */
const listWaits = (owner: string, count: number): number[] =>
  Array.from({ length: count }, () => {
    const admission = limits.admit(owner);
    return admission.admitted ? 0 : admission.waitMs / 1_000;
  });

const hang = (times: number): PostResult[] => Array(times).fill(HUNG);

test.each<[string, PostResult[], number]>([
  ['that was never tried', [], 10],
  ['that answers', [OK], 50],
  ['that answers late', [OK, SLOW], 10],
  ['that answers with an error', [OK, FAULTY], 10],
  ['that hung four times', [OK, ...hang(4)], 10],
  ['that hung five times', [OK, ...hang(5)], 1],
  ['that hung, and whose name does not resolve', [...hang(5), NO_NAME], 1],
  ['that hung, and answers with an error', [...hang(5), FAULTY], 10],
  ['that hung, and answers again', [...hang(5), OK], 50],
])('an endpoint %s has its number of slots', (_which, results, slots) => {
  attempt('shop', ...results);
  expect(fill('shop')).toHaveLength(slots);
});

test('endpoints that answer find slots, however many others hang', () => {
  attempt('good', OK);
  const unproven = Array.from({ length: 50 }, (_, n) => fill(`new-${n}`)).flat();
  expect(unproven).toHaveLength(SLOTS / 2);
  for (const { leave } of unproven) leave(HUNG);
  for (let n = 0; n < 60; n += 1) attempt(`bad-${n}`, ...hang(5));
  const hanging = Array.from({ length: 60 }, (_, n) => fill(`bad-${n}`)).flat();
  expect(hanging).toHaveLength(SLOTS / 4);
  expect(fill('good')).toHaveLength(50);
});

test('an attempt that leaves without a post frees its slot and changes no limit', () => {
  attempt('shop', ...Array(40).fill(OK));
  for (const { leave } of fill('shop')) leave();
  expect(fill('shop')).toHaveLength(50);
  // An event for a quick endpoint waits half a second.
  expect(limits.admit('shop')).toEqual({ admitted: false, waitMs: 500 });
});

test('events for an endpoint that hangs wait for the next probe, and 100,000 return at most five times a second', () => {
  attempt('shop', ...hang(40));
  expect(fill('shop')).toHaveLength(1);
  const waits = listWaits('shop', 2_401).map(Math.round);
  expect(waits.slice(0, 5)).toEqual([30, 45, 60, 75, 90]);
  // Past ten hours at random, between half of it and all.
  expect(waits.slice(-4)).toEqual([35_985, 36_000, 27_000, 27_000]);
  const all = [...waits, ...listWaits('shop', 97_599)];
  const perSecond = all.reduce((sum, seconds) => sum + 1 / seconds, 0);
  expect(perSecond).toBeLessThan(5);
});

test('events for an endpoint that has not answered yet return one by one, within a minute', () => {
  fill('shop');
  nowMs = 10_000;
  const waits = listWaits('shop', 62).map(Math.round);
  expect(waits.slice(0, 3)).toEqual([1, 2, 3]);
  // Past a minute at random between half a minute and a whole one.
  expect(waits.slice(-3)).toEqual([60, 45, 45]);
});

test('a thousand endpoints that hang are probed four times a second in total', () => {
  for (let n = 0; n < 1_000; n += 1) attempt(`bad-${n}`, ...hang(5));
  fill('bad-0');
  // The second after the one that was refused while it was filled.
  expect(limits.admit('bad-0')).toEqual({ admitted: false, waitMs: 500_000 });
  attempt('bad-1', FAULTY);
  expect(limits.admit('bad-0')).toEqual({ admitted: false, waitMs: 749_750 });
});

test('endpoints that hung and are not tried any more slow down no probes', () => {
  for (let n = 0; n < 1_000; n += 1) attempt(`gone ${n}`, ...hang(5));
  nowMs = 11 * 3_600_000;
  attempt('slow', ...hang(5));
  limits.admit('slow');
  expect(listWaits('slow', 1)).toEqual([15]);
});

test('an extra attempt is admitted ten times a second while most slots are free', () => {
  expect(limits.admit('shop')).toMatchObject({ admitted: true, isProbe: false });
  attempt('bad', ...hang(5));
  expect(limits.admit('bad')).toMatchObject({ admitted: true, isProbe: true });
  expect(limits.admitMore('bad')).toBe(false);
  attempt('good', OK);
  for (let n = 0; n < 24; n += 1) limits.admit('good');
  expect([limits.admitMore('good'), limits.admitMore('good')]).toEqual([true, false]);
  nowMs += 100;
  expect(limits.admitMore('good')).toBe(true);
  nowMs += 100;
  limits.admit('good');
  expect(limits.admitMore('good')).toBe(false);
});

test('events wait as if the endpoint hung while its first attempts have no answer', () => {
  fill('shop');
  const waits = [20, 100, 700, 3_000].map((ageMs) => {
    nowMs = ageMs;
    return listWaits('shop', 1).map((seconds) => seconds * 1_000 + ageMs);
  });
  // Ten at a time: a second each, then ten times as long as they have waited, ten seconds at most.
  expect(waits.flat()).toEqual([520, 600, 1_400, 4_000]);
});

describe('a workflow task waits', () => {
  const fillPrompt = (owner: string) => {
    const entered = [];
    for (let next = limits.admitPrompt(owner); next !== null; next = limits.admitPrompt(owner)) {
      entered.push(next);
    }
    return entered;
  };

  test.each<[string, PostResult[], number]>([
    ['for an endpoint that answered at once', [OK], 20],
    ['for no endpoint that was never tried', [], 0],
    ['for no endpoint that took a second', [OK, { ...OK, durationMs: 1_000 }], 0],
    ['for no endpoint whose last attempt failed', [OK, FAULTY], 0],
  ])('%s', (_which, results, slots) => {
    attempt('shop', ...results);
    expect(fillPrompt('shop')).toHaveLength(slots);
  });

  test('for no endpoint whose answer is older than five minutes', () => {
    attempt('shop', OK);
    nowMs = 300_000;
    expect(limits.admitPrompt('shop')).not.toBeNull();
    nowMs = 300_001;
    expect(limits.admitPrompt('shop')).toBeNull();
  });

  test('for at most 50 attempts in total, which count as any others', () => {
    const held = Array.from({ length: 20 }, (_, n) => {
      attempt(`shop-${n}`, OK);
      return fillPrompt(`shop-${n}`);
    }).flat();
    expect(held).toHaveLength(50);
    expect(fill('shop-0')).toHaveLength(30);
    held[0]?.leave(HUNG);
    expect(limits.admitPrompt('shop-0')).toBeNull();
    expect(fillPrompt('shop-19')).toHaveLength(1);
  });
});
