import { chooseBaseline, isRedelivered } from '../../../clients/typescript/src/cli/redelivered';
import type { EventDelivery } from '../../../clients/typescript/src/resources/events';

// Signatures: test/webhooks/signature.test.ts
const NOW = new Date('2026-11-21T12:00:00.000Z');
const LATER = '2026-11-21T12:10:00.000Z';
const EARLIER = '2026-11-21T11:59:00.000Z';

function build(
  status: EventDelivery['status'],
  attempts: number,
  next_attempt_at: string | null = null,
) {
  return { endpoint_id: 'we_1', status, attempts, next_attempt_at };
}

test.each([
  ['an event that had arrived', build('delivered', 1), build('delivered', 2), true],
  ['one whose attempts were over', build('exhausted', 12), build('pending', 13, LATER), true],
  ['one that was not subscribed to', build('not_subscribed', 0), build('delivered', 1), true],
  ['a retry before its time', build('pending', 2, LATER), build('delivered', 3), true],
  ['a retry that was due', build('pending', 2, EARLIER), build('delivered', 3), false],
  ['the first attempt', build('pending', 0, LATER), build('delivered', 1), false],
  ['a run without an attempt yet', build('delivered', 1), build('pending', 1, LATER), false],
  ['an endpoint that did not exist', undefined, build('delivered', 1), false],
])('an event counts as redelivered or not: %s, %j, then %j', (_, before, after, expected) => {
  expect(isRedelivered(before, after, NOW)).toBe(expected);
});

test.each(['delivered', 'exhausted', 'not_subscribed'] as const)(
  'an event that was %s counts as redelivered also when its new run was seen before the attempt',
  (status) => {
    const [before, run, after] = [build(status, 1), build('pending', 1, EARLIER), build(status, 2)];
    expect(isRedelivered(before, run, NOW)).toBe(false);
    expect(isRedelivered(chooseBaseline(before, run), after, NOW)).toBe(true);
    // A retry that was due remains one.
    const due = chooseBaseline(run, build('pending', 2, EARLIER));
    expect(isRedelivered(due, build(status, 3), NOW)).toBe(false);
  },
);
