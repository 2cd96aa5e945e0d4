/** Failure that the developer can mend; its message explains it whole, so no stack is shown. */
export class StackFailure extends Error {
  override readonly name = 'StackFailure';
}

/** Text of an unknown thrown value. */
export function reasonOf(error: unknown): string {
  if (errorCode(error) === 'ENOSPC') return 'the disk is full';
  if (!isObject(error) || !('message' in error)) return String(error);
  // `fetch failed` says nothing by itself: its cause does.
  const cause = 'cause' in error && error.cause !== undefined ? `: ${reasonOf(error.cause)}` : '';
  return `${error.message}${cause}`;
}

/** Code of a system error, e.g. `EEXIST`. */
export function errorCode(error: unknown): string | undefined {
  if (!isObject(error) || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

/** Not `instanceof Error`: Node's own errors are of another realm than a test's. */
function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
