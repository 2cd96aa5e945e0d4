import type { StatementLine } from './statement';

/**
 * Names a movement by the bank's reference, and by the place in it where the bank booked several
 * movements under one: `REF#entry.part`. Connectors and statements name the same movement alike.
 * @see docs/ledger.md#bank-movements
 */
export function nameMovement({
  bank_reference,
  position,
}: Pick<StatementLine, 'bank_reference' | 'position'>): string | null {
  if (bank_reference === null || position === undefined) return bank_reference;
  return `${bank_reference}#${position}`;
}
