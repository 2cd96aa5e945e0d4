import { assertLawful, assertNever } from '../../src/domain/assert';
import { PAYMENT_MOVES } from '../../src/domain/payment';
import { PAYOUT_MOVES } from '../../src/domain/payout';
import { REFUND_MOVES } from '../../src/domain/refund';

test('a case that no switch knows is refused by name', () => {
  const unknown = JSON.parse('{"kind":"news"}') as never;
  expect(() => assertNever(unknown)).toThrow('{"kind":"news"}');
});

describe('lawful moves', () => {
  test('are taken step by step', () => {
    assertLawful(PAYMENT_MOVES, 'created', ['awaiting_customer', 'authorized', 'settled']);
    assertLawful(REFUND_MOVES, 'processing', ['settled']);
    assertLawful(PAYOUT_MOVES, 'created', ['submitted', 'sent', 'completed', 'returned']);
  });

  test.each([
    ['a step left out', () => assertLawful(PAYMENT_MOVES, 'awaiting_customer', ['settled'])],
    ['a final state left', () => assertLawful(REFUND_MOVES, 'failed', ['settled'])],
    ['a way back', () => assertLawful(PAYOUT_MOVES, 'sent', ['completed', 'sent'])],
  ])('%s is refused', (_, move) => {
    expect(move).toThrow(RangeError);
  });
});
