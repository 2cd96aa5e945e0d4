import {
  computeRest,
  findReportedSent,
  holdsSent,
  isUnbooked,
  type SentHeld,
  sumPosted,
  takeSent,
} from '../../src/domain/sent-held';

const AT = '2026-03-04T05:06:07.089Z';
const sent = (id: string, more: Partial<SentHeld> = {}): SentHeld => ({
  id,
  bank_reference: id,
  amount: 600,
  currency: 'EUR',
  at: AT,
  ...more,
});
const taken = (items: SentHeld[], change: Partial<Parameters<typeof takeSent>[1]> = {}) =>
  takeSent(items, {
    isFailed: false,
    sent: 1_000n,
    currency: 'EUR',
    isAct: true,
    at: AT,
    ...change,
  });
const rests = (items: SentHeld[]) => items.map((held) => Number(computeRest(held)));

test('an act applies what was sent in its currency, up to its amount', () => {
  const { items, posted, back } = taken([sent('a'), sent('b'), sent('c', { currency: 'USD' })]);
  expect(rests(items)).toEqual([0, 200, 600]);
  expect([posted, back, sumPosted({ sent_held: items })]).toEqual([1_000n, [], 1_000n]);
  expect(holdsSent({ sent_held: items })).toBe(true);
});

test('a report applies what has its own bank reference, or none', () => {
  const items = [sent('a'), sent('b', { bank_reference: null }), sent('c')];
  const { items: after } = taken(items, { isAct: false, bank_reference: 'c' });
  expect(rests(after)).toEqual([600, 0, 200]);
});

test('a failure returns all of it, since nothing is sent', () => {
  const items = [sent('a', { posted: 600 }), sent('b'), sent('c', { currency: 'USD' })];
  const { items: after, back, posted } = taken(items, { isFailed: true, isAct: false });
  expect(back.map(({ id }) => id)).toEqual(['b', 'c']);
  expect(posted).toBe(0n);
  expect(after.map(({ resolved }) => resolved?.as)).toEqual([undefined, 'returned', 'returned']);
  expect(holdsSent({ sent_held: after })).toBe(false);
});

test('an amount of an asset is exact, beyond what a number holds', () => {
  const amount = '10000000000000000000001';
  const { items, posted } = taken([sent('a', { amount })], { sent: BigInt(amount) - 1n });
  expect([posted, items[0]?.posted]).toEqual([BigInt(amount) - 1n, '10000000000000000000000']);
});

test.each([
  ['its bank reference', { callback_id: 'x', bank_reference: 'a' }, 'a'],
  ['its callback', { callback_id: 'a' }, 'a'],
  ['nothing else when it has no bank reference', { callback_id: 'x' }, 'a'],
  ['a new bank reference of funds without one', { callback_id: 'x', bank_reference: 'new' }, 'b'],
])('a report is matched by %s', (_what, report, id) => {
  expect(findReportedSent([sent('a'), sent('b', { bank_reference: null })], report)?.id).toBe(id);
});

const sentBefore = { status: 'failed', bank_reference: 'own', sent_at: '2026-01-02T10:00:00.000Z' };
test.each([
  ['a repeat', { callback_id: 'x', bank_reference: 'own', says: 'sent' }, false],
  ['a repeat without a name', { callback_id: 'x', says: 'sent' }, false],
  ['different funds', { callback_id: 'x', bank_reference: 'other', says: 'sent' }, true],
  [
    'the same funds, sent again',
    { callback_id: 'x', bank_reference: 'own', says: 'completed' },
    true,
  ],
] as const)('a report after a failure is new unless it repeats: %s', (_what, report, is) => {
  expect(isUnbooked(sentBefore, 'payout', report)).toBe(is);
});

test('a report with another bank reference has no match', () => {
  expect(findReportedSent([sent('a')], { callback_id: 'x', bank_reference: 'b' })).toBeUndefined();
  expect(findReportedSent([], { callback_id: 'x' })).toBeUndefined();
});

const other = { callback_id: 'x', bank_reference: 'other' };
test.each([
  ['payout', 'created', null, other, true],
  ['payout', 'failed', 'own', { callback_id: 'x' }, true],
  // What was sent is in the ledger already.
  ['payout', 'sent', 'own', { callback_id: 'x', bank_reference: 'own' }, false],
  ['payout', 'sent', 'own', { callback_id: 'x' }, false],
  ['payout', 'sent', 'own', other, true],
  ['payout', 'sent', null, other, false],
  ['payout', 'completed', 'own', other, false],
  ['refund', 'settled', 'own', other, false],
  ['crypto_settlement', 'sent', 'own', other, true],
  ['refund', 'processing', 'own', { callback_id: 'applied' }, false],
] as const)(
  'a report about a %s that is %s has new funds or not: %#',
  (kind, status, name, report, is) => {
    const resource = { status, bank_reference: name, applied_callbacks: ['applied'] };
    expect(isUnbooked(resource, kind, report)).toBe(is);
  },
);
