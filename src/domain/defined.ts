/** Leaves out the fields that are undefined: the database would store them as null. */
export function defined<T extends object>(fields: T): T {
  const kept = Object.entries(fields).filter(([, value]) => value !== undefined);
  // Only optional fields are left out.
  return Object.fromEntries(kept) as T;
}
