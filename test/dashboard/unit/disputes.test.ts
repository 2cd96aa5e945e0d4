import { formatMoved } from '../../../src/dashboard/disputes/disputes';
import type { DisputeTransfer } from '../../../src/domain/dispute/report';

const taken: DisputeTransfer = {
  ...{ direction: 'out', amount: 400, fee: 1_500, held: 1_900, owed: 0 },
  ...{ at: '2026-03-01T12:00:00.000Z', by: 'cb-1' },
};

test('what a dispute took has the fee that the merchant bears, and none of the service', () => {
  const format = (...transfers: DisputeTransfer[]) =>
    formatMoved({ currency: 'EUR', transfers }, 'out');
  expect(format(taken)).toBe('€4.00, and a fee of €15.00');
  expect(format({ ...taken, fee_bearer: 'service' })).toBe('€4.00');
  expect(format(taken, taken)).toBe('€8.00, and a fee of €30.00');
  expect(format({ ...taken, direction: 'in' })).toBeNull();
});
