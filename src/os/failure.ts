/** Something the developer can mend: its message is the whole explanation, so no stack is shown. */
export class StackFailure extends Error {
  override readonly name = 'StackFailure';
}

/** What an unknown thrown value says. */
export function reasonOf(error: unknown): string {
  if (errorCode(error) === 'ENOSPC') return 'the disk is full';
  if (!isObject(error) || !('message' in error)) return String(error);
  // `fetch failed` says nothing by itself: its cause does.
  const cause = 'cause' in error && error.cause !== undefined ? `: ${reasonOf(error.cause)}` : '';
  return `${error.message}${cause}`;
}

/** The code of a system error, e.g. `EEXIST`. */
export function errorCode(error: unknown): string | undefined {
  if (!isObject(error) || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

/** Not `instanceof Error`: Node's own errors are of another realm than a test's. */
function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
