import { REFUSED, type Standing } from './standing';

/**
 * Difference between a resource's document and its workflow.
 * - `missing`: the workflow has opened it, and MongoDB does not hold it
 * - `behind`: MongoDB holds an earlier version than the workflow has reached, or lacks a booking
 * - `ahead`: MongoDB holds a later one; the workflow takes it over on its next move
 * - `contradicts`: the same version, in another state; or the workflow has refused what MongoDB holds
 */
export type Disagreement = 'missing' | 'behind' | 'ahead' | 'contradicts';

/** Compares what both say of one resource; null when they agree, or nothing was opened yet. */
export function compare(workflow: Standing | null, document: Standing | null): Disagreement | null {
  if (workflow === null) return null;
  if (workflow === REFUSED) return document === null ? null : 'contradicts';
  if (document === null) return 'missing';
  const lacks = workflow.bookings.some((booking) => !document.bookings.includes(booking));
  if (document.version < workflow.version || lacks) return 'behind';
  if (document.version > workflow.version) return 'ahead';
  return document.status === workflow.status ? null : 'contradicts';
}
