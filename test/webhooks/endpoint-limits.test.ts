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

let nowMs = 0;
function limits(): EndpointLimits {
  nowMs = 0;
  return createEndpointLimits({
    slots: SLOTS,
    promptSlots: 50,
    now: () => nowMs,
    random: () => 0.5,
  });
}

/** As many attempts as are let in, none of which ends. */
function fill(one: EndpointLimits, owner: string): Extract<Admission, { admitted: true }>[] {
  const entered = [];
  for (;;) {
    const admission = one.admit(owner);
    if (!admission.admitted) return entered;
    entered.push(admission);
  }
}

function attempt(one: EndpointLimits, owner: string, ...results: PostResult[]): void {
  for (const result of results) {
    const admission = one.admit(owner);
    if (!admission.admitted) throw new Error('It was not let in.');
    admission.leave(result);
  }
}

test.each([
  ['that nothing is known of', [], 10],
  ['that answers', [OK], 50],
  ['that answers late', [OK, SLOW], 10],
  ['that answers with an error', [OK, FAULTY], 10],
  ['that hung four times', [OK, HUNG, HUNG, HUNG, HUNG], 10],
  ['that hung five times', [OK, HUNG, HUNG, HUNG, HUNG, HUNG], 1],
  ['that hung, and whose name is not found', [...Array(5).fill(HUNG), NO_NAME], 1],
  ['that hung, and answers with an error', [...Array(5).fill(HUNG), FAULTY], 10],
  ['that hung, and answers again', [...Array(5).fill(HUNG), OK], 50],
] as [string, PostResult[], number][])('an endpoint %s', (_which, results, held) => {
  const one = limits();
  attempt(one, 'shop', ...results);
  expect(fill(one, 'shop')).toHaveLength(held);
});

test('however many endpoints hang, those that answer find slots', () => {
  const one = limits();
  attempt(one, 'good', OK);
  const unproven = Array.from({ length: 50 }, (_, n) => fill(one, `new-${n}`)).flat();
  expect(unproven).toHaveLength(SLOTS / 2);
  for (const { leave } of unproven) leave(HUNG);
  for (let n = 0; n < 60; n += 1) attempt(one, `bad-${n}`, HUNG, HUNG, HUNG, HUNG, HUNG);
  const hanging = Array.from({ length: 60 }, (_, n) => fill(one, `bad-${n}`)).flat();
  expect(hanging).toHaveLength(SLOTS / 4);
  expect(fill(one, 'good')).toHaveLength(50);
});

test('a slot that was left without a post is free, and nothing was learned', () => {
  const one = limits();
  attempt(one, 'shop', OK);
  for (const { leave } of fill(one, 'shop')) leave();
  expect(fill(one, 'shop')).toHaveLength(50);
});

test('events for an endpoint that hangs wait until it is their time to probe it', () => {
  const one = limits();
  attempt(one, 'shop', ...Array(40).fill(HUNG));
  expect(fill(one, 'shop')).toHaveLength(1);
  const waits = Array.from({ length: 2_401 }, () => one.admit('shop')).map((admission) =>
    admission.admitted ? 0 : Math.round(admission.waitMs / 1_000),
  );
  expect(waits.slice(0, 5)).toEqual([30, 45, 60, 75, 90]);
  // Past ten hours at random, between half of it and all.
  expect(waits.slice(-4)).toEqual([35_985, 36_000, 27_000, 27_000]);
});

test('100,000 that wait come back at most five times a second', () => {
  const one = limits();
  attempt(one, 'shop', ...Array(5).fill(HUNG));
  fill(one, 'shop');
  const waits = Array.from({ length: 100_000 }, () => one.admit('shop')).map((admission) =>
    admission.admitted ? 0 : admission.waitMs / 1_000,
  );
  const perSecond = waits.reduce((sum, seconds) => sum + 1 / seconds, 0);
  expect(perSecond).toBeLessThan(5);
});

test('those that wait for one without an answer yet come one after the other, within a minute', () => {
  const one = limits();
  fill(one, 'shop');
  nowMs = 10_000;
  const waits = Array.from({ length: 62 }, () => one.admit('shop')).map((admission) =>
    admission.admitted ? 0 : Math.round(admission.waitMs / 1_000),
  );
  expect(waits.slice(0, 3)).toEqual([1, 2, 3]);
  // Past a minute at random between half a minute and a whole one.
  expect(waits.slice(-3)).toEqual([60, 45, 45]);
});

test('a thousand endpoints that hang are probed four times a second in all', () => {
  const one = limits();
  for (let n = 0; n < 1_000; n += 1) attempt(one, `bad-${n}`, ...Array(5).fill(HUNG));
  fill(one, 'bad-0');
  const admission = one.admit('bad-0');
  // The second after the one that was refused while it was filled.
  expect(admission).toEqual({ admitted: false, waitMs: 500_000 });
  attempt(one, 'bad-1', FAULTY);
  expect(one.admit('bad-0')).toEqual({ admitted: false, waitMs: 749_750 });
});

test('one more at once is welcome while most slots are free, ten times a second', () => {
  const one = limits();
  expect(one.admit('shop')).toMatchObject({ admitted: true, isProbe: false });
  attempt(one, 'bad', ...Array(5).fill(HUNG));
  expect(one.admit('bad')).toMatchObject({ admitted: true, isProbe: true });
  expect(one.admitMore('bad')).toBe(false);
  attempt(one, 'good', OK);
  for (let n = 0; n < 24; n += 1) one.admit('good');
  expect([one.admitMore('good'), one.admitMore('good')]).toEqual([true, false]);
  nowMs += 100;
  expect(one.admitMore('good')).toBe(true);
  nowMs += 100;
  one.admit('good');
  expect(one.admitMore('good')).toBe(false);
});

test('while those under way have no answer yet, the others wait as if they hung', () => {
  const one = limits();
  fill(one, 'shop');
  const waits = [20, 100, 700, 3_000].map((ageMs) => {
    nowMs = ageMs;
    const admission = one.admit('shop');
    return admission.admitted ? 0 : admission.waitMs + ageMs;
  });
  // Ten at a time: a second each, then ten times as long as they have waited, ten seconds at most.
  expect(waits).toEqual([520, 600, 1_400, 4_000]);
});

test('one that is quick is asked again soon, but not at once', () => {
  const one = limits();
  attempt(one, 'shop', ...Array(40).fill(OK));
  fill(one, 'shop');
  expect(one.admit('shop')).toEqual({ admitted: false, waitMs: 500 });
});

describe('a workflow task waits', () => {
  const fillPrompt = (one: EndpointLimits, owner: string) => {
    const entered = [];
    for (let next = one.admitPrompt(owner); next !== null; next = one.admitPrompt(owner)) {
      entered.push(next);
    }
    return entered;
  };

  test.each([
    ['an endpoint that answered at once', [OK], 20],
    ['none that nothing is known of', [], 0],
    ['none that took a second', [OK, { ...OK, durationMs: 1_000 }], 0],
    ['none whose last attempt failed', [OK, FAULTY], 0],
    ['one that failed before', [FAULTY, OK], 20],
  ] as [string, PostResult[], number][])('for %s', (_which, results, held) => {
    const one = limits();
    attempt(one, 'shop', ...results);
    expect(fillPrompt(one, 'shop')).toHaveLength(held);
  });

  test('for none whose answer is older than five minutes', () => {
    const one = limits();
    attempt(one, 'shop', OK);
    nowMs = 300_000;
    expect(one.admitPrompt('shop')).not.toBeNull();
    nowMs = 300_001;
    expect(one.admitPrompt('shop')).toBeNull();
  });

  test('for so many together at most, and those count as any other', () => {
    const one = limits();
    const held = Array.from({ length: 20 }, (_, n) => {
      attempt(one, `shop-${n}`, OK);
      return fillPrompt(one, `shop-${n}`);
    }).flat();
    expect(held).toHaveLength(50);
    expect(fill(one, 'shop-0')).toHaveLength(30);
    held[0]?.leave(HUNG);
    expect(one.admitPrompt('shop-0')).toBeNull();
    expect(fillPrompt(one, 'shop-19')).toHaveLength(1);
  });
});
