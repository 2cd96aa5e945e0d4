/** The message describes the observation. */
export class Broken extends Error {
  override readonly name = 'Broken';
}

/** Promise that cannot be checked, or that the connector does not make. */
export class NotApplicable extends Error {
  override readonly name = 'NotApplicable';
}

/** @throws NotApplicable */
export function need<T>(value: T | undefined, why: string): T {
  if (value === undefined) throw new NotApplicable(why);
  return value;
}

/** @throws Broken */
export function assertSeen(holds: boolean, otherwise: string): void {
  if (!holds) throw new Broken(otherwise);
}
