/** MongoDB would store undefined as null. */
export function omitUndefined<T extends object>(fields: T): T {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  // Only optional fields can be undefined, so this is still a T.
  return Object.fromEntries(entries) as T;
}
