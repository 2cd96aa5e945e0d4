import { REFUSED, type ResourceState } from './state';

/**
 * Difference between a resource's document and its workflow.
 * - `missing`: the workflow has opened it, but it is not in MongoDB
 * - `behind`: MongoDB has an earlier version than the workflow, or lacks a booking
 * - `ahead`: MongoDB has a later version; the workflow syncs from it on its next transition
 * - `contradicts`: the same version with another status, or the workflow has refused the resource
 */
export type Disagreement = 'missing' | 'behind' | 'ahead' | 'contradicts';

/** Compares both states; null when they agree, or when the resource is not opened yet. */
export function compare(
  workflow: ResourceState | null,
  document: ResourceState | null,
): Disagreement | null {
  if (workflow === null) return null;
  if (workflow === REFUSED) return document === null ? null : 'contradicts';
  if (document === null) return 'missing';
  const lacks = workflow.bookings.some((booking) => !document.bookings.includes(booking));
  if (document.version < workflow.version || lacks) return 'behind';
  if (document.version > workflow.version) return 'ahead';
  return document.status === workflow.status ? null : 'contradicts';
}
