/** Omits undefined fields, which MongoDB would store as null. */
export function omitUndefined<T extends object>(fields: T): T {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  // Only optional fields can be undefined, so the result is still a T.
  return Object.fromEntries(entries) as T;
}
