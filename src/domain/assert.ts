/** Ends a switch over a union: a new member does not compile until it has a case. */
export function assertNever(value: never): never {
  throw new Error(`Unhandled case: ${JSON.stringify(value)}`);
}

/** @throws RangeError for a step that is not allowed, which is a bug */
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
