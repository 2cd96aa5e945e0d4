export const OPERATOR_ROLES = ['operator', 'approver'] as const;

/** An approver also decides on the requests of others. */
export type OperatorRole = (typeof OPERATOR_ROLES)[number];

export interface VerifiedOperator {
  operator_id: string;
  name: string;
  role: OperatorRole;
}

/** Keys under one name belong to one operator, however it is spelled. */
export function isSameOperator(a: string, b: string): boolean {
  return normalizeName(a) === normalizeName(b);
}

export function normalizeName(name: string): string {
  return name.normalize('NFKC').trim().toLowerCase();
}
