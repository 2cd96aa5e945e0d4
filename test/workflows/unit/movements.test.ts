import type { PayoutCallbackName, RefundCallbackName } from '../../../src/domain/banks/callback';
import type { Movement } from '../../../src/domain/banks/movement';
import type { CryptoSettlementCallbackName } from '../../../src/domain/crypto/callback';
import * as settlements from '../../../workflows/crypto-settlement/lifecycle';
import * as payouts from '../../../workflows/payout/lifecycle';
import * as refunds from '../../../workflows/refund/lifecycle';
import { buildReport, findNamed, keepsReason, listOwn } from '../../../workflows/shared/movement';
import { makeMovement } from '../../support/movements';

/** Resource that asked its bank to send 10 EUR. */
const makeResource = (status: string, movements: Movement[] = []) =>
  Object({ status, movements, facts: { amount: 1_000, currency: 'EUR' } });

const REPORT = { callback_id: 'x', occurred_at: '2026-03-04T05:06:07.089Z' };
const LESS = { amount: 900 };
const DOLLARS = { currency: 'USD' };

/** Writes a plan as its direction, its reason and what else holds. */
function describePlan(plan: object | string | undefined): string {
  if (typeof plan !== 'object') return plan ?? 'nothing';
  return Object.entries(plan)
    .map(([field, value]) => (value === true ? field : value))
    .join(' ');
}

describe('a report that changes no status moves money of', () => {
  test.each<[status: string, name: RefundCallbackName, facts: object, plan: string]>([
    ['processing', 'settled', {}, 'nothing'],
    ['processing', 'settled', LESS, 'out amount_differs'],
    ['processing', 'settled', DOLLARS, 'out amount_differs'],
    ['processing', 'failed', {}, 'nothing'],
    ['settled', 'settled', {}, 'out second_completion'],
    ['settled', 'settled', LESS, 'out second_completion'],
    ['settled', 'failed', {}, 'in failed_after_settled'],
    ['failed', 'settled', {}, 'out settled_after_failed isAfresh isBorne'],
    ['failed', 'settled', LESS, 'out settled_after_failed isAfresh isBorne'],
    ['failed', 'failed', {}, 'nothing'],
  ])('a refund that is %s: %s of %j is %s', (status, name, facts, plan) => {
    const callback = { ...REPORT, ...facts };
    expect(describePlan(refunds.suspend(makeResource(status), name, callback))).toBe(plan);
  });

  test('a refund that failed, settled late and fails again is in failed_after_settled', () => {
    const late = makeMovement({ direction: 'out', reason: 'settled_after_failed' });
    const plan = refunds.suspend(makeResource('failed', [late]), 'failed', REPORT);
    expect(describePlan(plan)).toBe('in failed_after_settled');
  });

  test.each<[status: string, name: PayoutCallbackName, facts: object, plan: string]>([
    ['created', 'sent', {}, 'nothing'],
    ['created', 'sent', LESS, 'out amount_differs'],
    ['submitted', 'completed', DOLLARS, 'out amount_differs'],
    ['submitted', 'submitted', {}, 'nothing'],
    ['sent', 'sent', {}, 'out second_completion'],
    ['sent', 'completed', {}, 'out second_completion isLaterStep'],
    ['sent', 'completed', LESS, 'out amount_differs'],
    ['sent', 'failed', {}, 'nothing'],
    ['completed', 'sent', {}, 'nothing'],
    ['completed', 'completed', {}, 'out second_completion'],
    ['completed', 'failed', {}, 'nothing'],
    ['completed', 'returned', LESS, 'in amount_differs'],
    ['returned', 'completed', {}, 'out moved_after_returned'],
    ['failed', 'sent', {}, 'out moved_after_failed'],
    ['failed', 'completed', {}, 'out moved_after_failed isAfresh'],
    ['failed', 'failed', {}, 'back'],
    ['failed', 'returned', {}, 'back'],
    ['completed', 'debit_reversed', {}, 'in debit_reversed'],
    ['returned', 'return_reversed', {}, 'out return_reversed'],
  ])('a payout that is %s: %s of %j is %s', (status, name, facts, plan) => {
    const callback = { ...REPORT, ...facts };
    expect(describePlan(payouts.suspend(makeResource(status), name, callback, undefined))).toBe(
      plan,
    );
  });

  test.each([
    ['return_too_late', 'in return_too_late'],
    ['return_not_possible', 'in return_not_possible'],
    ['second_return', 'in second_return'],
    ['malformed_callback', 'in amount_differs'],
  ] as const)('a payout that comes back with %s is %s', (attention, plan) => {
    const planned = payouts.suspend(makeResource('completed'), 'returned', REPORT, attention);
    expect(describePlan(planned)).toBe(plan);
  });

  test('no payout again, where a return has no amount and another one is in suspense', () => {
    const held = makeResource('completed', [makeMovement()]);
    const suspend = (facts: object) =>
      describePlan(payouts.suspend(held, 'returned', { ...REPORT, ...facts }, undefined));
    expect([suspend({}), suspend(LESS)]).toEqual(['nothing', 'in amount_differs']);
  });

  test.each<[status: string, name: CryptoSettlementCallbackName, plan: string]>([
    ['pending', 'sent', 'nothing'],
    ['sent', 'completed', 'out amount_differs'],
    ['completed', 'completed', 'nothing'],
    ['completed', 'failed', 'nothing'],
    ['failed', 'sent', 'nothing'],
    ['failed', 'completed', 'out moved_after_failed'],
    ['failed', 'failed', 'back'],
  ])('a crypto settlement that is %s: %s is %s', (status, name, plan) => {
    expect(describePlan(settlements.suspend(makeResource(status), name))).toBe(plan);
  });
});

test('a report has the facts of its callback, and on a chain its transaction as reference', () => {
  const source = { kind: 'callback', id: 'x' };
  const bank = { callback_id: 'x', bank_reference: '', ...LESS, value_date: '2026-03-02' };
  expect(buildReport('in', bank)).toEqual({
    ...{ source, direction: 'in', amount: 900, value_date: '2026-03-02' },
  });
  const chain = { callback_id: 'x', bank_reference: 'B', transaction_id: '0xT' };
  expect(buildReport('out', chain)).toEqual({ source, direction: 'out', bank_reference: '0xT' });
});

const OUT = { direction: 'out', currency: 'EUR' } as const;
const sent = (id: string, more: Partial<Movement> = {}) =>
  makeMovement({ id, bank_reference: id, direction: 'out', amount: 600, ...more });
const SENT = [
  sent('a'),
  sent('b', { bank_reference: null }),
  sent('c'),
  sent('d', { currency: 'USD' }),
  makeMovement({ id: 'i' }),
];

test.each([
  ['an act', { isAct: true }, 'a b c'],
  ['an act that names one', { isAct: true, movement: 'c' }, 'c'],
  ['an act that names one of another currency', { isAct: true, movement: 'd' }, ''],
  ['a report without a reference', { isAct: false }, 'a b c'],
  ['a report: what has its own reference, or none,', { isAct: false, reference: 'c' }, 'b c'],
  ['a report with a new reference', { isAct: false, reference: 'new' }, 'b'],
])('%s takes its part out of suspense', (_what, next, ids) => {
  expect(listOwn(SENT, next, OUT).map(({ id }) => id)).toEqual(ids.split(' ').filter(Boolean));
});

test('an act names what is in suspense, unless there is only one', () => {
  const applied = sent('z', { applied: 600 });
  const [a, b] = [sent('a'), sent('b')];
  expect(findNamed({ movements: [applied, a] }, undefined)).toBe(a);
  expect(findNamed({ movements: [a, b] }, 'b')).toBe(b);
  expect(findNamed({ movements: [applied] }, undefined)).toBe('No money is in suspense.');
  expect(findNamed({ movements: [applied] }, 'z')).toBe('No movement z is in suspense.');
  expect(findNamed({ movements: [a, b] }, undefined)).toBe(
    'Several movements are in suspense; name one by its id: a, b.',
  );
});

test('an attention reason stays as long as a movement with it is in suspense', () => {
  const of = { attention: 'amount_differs' };
  expect(keepsReason(of, [sent('a')])).toBe(true);
  expect(keepsReason(of, [sent('a', { applied: 600 })])).toBe(false);
  expect(keepsReason(of, [sent('a', { reason: 'second_completion' })])).toBe(false);
});
