import { assertLawful, assertNever } from '../../src/domain/assert';
import { PAYMENT_TRANSITIONS } from '../../src/domain/payment/payment';
import { PAYOUT_TRANSITIONS } from '../../src/domain/payout/payout';
import { REFUND_TRANSITIONS } from '../../src/domain/refund/refund';

test('a case that no switch has is refused by name', () => {
  const unknown = JSON.parse('{"kind":"news"}') as never;
  expect(() => assertNever(unknown)).toThrow('{"kind":"news"}');
});

test('a transition is lawful step by step', () => {
  assertLawful(PAYMENT_TRANSITIONS, 'created', ['awaiting_customer', 'authorized', 'settled']);
  assertLawful(REFUND_TRANSITIONS, 'processing', ['settled']);
  assertLawful(PAYOUT_TRANSITIONS, 'created', ['submitted', 'sent', 'completed', 'returned']);
});

test.each([
  ['leaves out a step', () => assertLawful(PAYMENT_TRANSITIONS, 'awaiting_customer', ['settled'])],
  ['leaves a final status', () => assertLawful(REFUND_TRANSITIONS, 'failed', ['settled'])],
  ['goes back', () => assertLawful(PAYOUT_TRANSITIONS, 'sent', ['completed', 'sent'])],
])('a transition that %s is refused', (_, check) => {
  expect(check).toThrow(RangeError);
});
