import type { Movement } from '../../src/domain/banks/movement';
import type { MovementDocument } from '../../src/store/movements';

export function makeMovement(more: Partial<Movement> = {}): Movement {
  const { id = 'mv_1', bank_reference = null } = more;
  return {
    id,
    names: bank_reference === null ? [id] : [bank_reference, id],
    ...{ bank_reference, direction: 'in', amount: 1_000, currency: 'EUR', value_date: null },
    reported_at: '2026-03-04T05:06:07.089Z',
    sources: [],
    ...{ reason: 'amount_differs', applied: 0, resolutions: [] },
    ...more,
  };
}

export function describeMovement(row: MovementDocument): string {
  const { direction, bank_reference, amount, state } = row;
  return [direction, bank_reference ?? '-', amount, state].join(' ');
}
