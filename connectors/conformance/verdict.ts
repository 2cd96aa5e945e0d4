/** Error of a promise that the connector breaks. Its message says what was seen. */
export class Broken extends Error {
  override readonly name = 'Broken';
}

/** Error of a promise that cannot be checked, or that the connector does not make. */
export class NotApplicable extends Error {
  override readonly name = 'NotApplicable';
}

/** @throws NotApplicable if something that a promise needs is missing */
export function need<T>(value: T | undefined, why: string): T {
  if (value === undefined) throw new NotApplicable(why);
  return value;
}

/** @throws Broken unless the condition holds */
export function assertSeen(holds: boolean, otherwise: string): void {
  if (!holds) throw new Broken(otherwise);
}
