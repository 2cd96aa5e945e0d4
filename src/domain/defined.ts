/** Leaves out undefined fields, which the database would store as null. */
export function defined<T extends object>(fields: T): T {
  const kept = Object.entries(fields).filter(([, value]) => value !== undefined);
  // Only optional fields are left out, so the result is still a T.
  return Object.fromEntries(kept) as T;
}
