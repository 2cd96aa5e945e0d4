/** A new member of a union does not compile until it has a case. */
export function assertNever(value: never): never {
  throw new Error(`Unhandled case: ${JSON.stringify(value)}`);
}

/** @throws RangeError for a transition that is not allowed, which is a bug */
export function assertLawful<Status extends string>(
  transitions: Record<Status, readonly Status[]>,
  from: Status,
  to: readonly Status[],
): void {
  let current = from;
  for (const next of to) {
    if (!transitions[current].includes(next))
      throw new RangeError(`There is no transition from ${current} to ${next}.`);
    current = next;
  }
}
