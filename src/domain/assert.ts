/** Ends a switch over a union, so that a new member does not compile until it has a case. */
export function assertNever(value: never): never {
  throw new Error(`Unhandled case: ${JSON.stringify(value)}`);
}

/**
 * Asserts that each step is lawful, at the place where a move is written.
 * @param moves the lawful moves of this kind of resource
 * @param to the states passed through, in order
 * @throws RangeError naming the unlawful step, which is a fault of ours; nothing is written
 */
export function assertLawful<Status extends string>(
  moves: Record<Status, readonly Status[]>,
  from: Status,
  to: readonly Status[],
): void {
  let at = from;
  for (const next of to) {
    if (!moves[at].includes(next)) throw new RangeError(`No move leads from ${at} to ${next}.`);
    at = next;
  }
}
