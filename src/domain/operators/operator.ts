export const OPERATOR_ROLES = ['operator', 'approver'] as const;

/** An approver also decides on the requests of others. */
export type OperatorRole = (typeof OPERATOR_ROLES)[number];

/** So long an approver decides on nothing that those ask for who made the key. */
export const NEW_APPROVER_MS = 24 * 3_600_000;

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
