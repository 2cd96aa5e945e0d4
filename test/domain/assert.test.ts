import { assertLawful, assertNever } from '../../src/domain/assert';
import { PAYMENT_TRANSITIONS } from '../../src/domain/payment/payment';
import { PAYOUT_TRANSITIONS } from '../../src/domain/payout/payout';
import { REFUND_TRANSITIONS } from '../../src/domain/refund/refund';

test('a case that no switch knows is refused by name', () => {
  const unknown = JSON.parse('{"kind":"news"}') as never;
  expect(() => assertNever(unknown)).toThrow('{"kind":"news"}');
});

describe('lawful moves', () => {
  test('are taken step by step', () => {
    assertLawful(PAYMENT_TRANSITIONS, 'created', ['awaiting_customer', 'authorized', 'settled']);
    assertLawful(REFUND_TRANSITIONS, 'processing', ['settled']);
    assertLawful(PAYOUT_TRANSITIONS, 'created', ['submitted', 'sent', 'completed', 'returned']);
  });

  test.each([
    ['a step left out', () => assertLawful(PAYMENT_TRANSITIONS, 'awaiting_customer', ['settled'])],
    ['a final state left', () => assertLawful(REFUND_TRANSITIONS, 'failed', ['settled'])],
    ['a way back', () => assertLawful(PAYOUT_TRANSITIONS, 'sent', ['completed', 'sent'])],
  ])('%s is refused', (_, move) => {
    expect(move).toThrow(RangeError);
  });
});
