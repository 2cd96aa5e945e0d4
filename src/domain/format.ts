/**
 * Format of the data in MongoDB, in Temporal and in `DATA_DIR`. Processes read no other one.
 * @see docs/operations.md#another-format
 */
export const FORMAT = 10;

/** @param found undefined where none is noted */
export function describeOtherFormat(
  place: string,
  found: number | undefined,
  remedy: string,
): string {
  const present = found === undefined ? 'data without a format number' : `format ${found}`;
  return `${place} has ${present}, and this version reads only format ${FORMAT}. ${remedy}`;
}

export const NEW_DATABASE =
  'Set both MONGODB_DB and TEMPORAL_NAMESPACE to new names, or with `npm start` DATA_DIR to ' +
  'another directory; or run the version that wrote it.';
