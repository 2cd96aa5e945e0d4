import { formatAmount } from '../../domain/amount';
import { bookCurrency } from '../../domain/crypto/assets';
import type { ShownMovement } from '../../service/banks/movements';
import { formatTime } from '../output';

export const MOVEMENT_COLUMNS = [
  ...['MOVEMENT', 'REPORTED', 'DIRECTION', 'AMOUNT', 'IDENTITY', 'STATE', 'REASON'],
];

export function movementCells(movement: ShownMovement): string[] {
  const { id, reported_at, direction, identity, state, reason, resolution } = movement;
  return [
    ...[id, formatTime(reported_at), direction, formatMovementAmount(movement), identity],
    resolution === null ? state : `${state}: ${resolution.as}`,
    reason ?? '-',
  ];
}

/** @param amount minor units; by default all of it */
export function formatMovementAmount(movement: ShownMovement, amount = movement.amount): string {
  const currency = 'currency' in movement ? movement.currency : bookCurrency(movement);
  return formatAmount(amount, currency);
}
