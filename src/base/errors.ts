/** Error of the environment or its use: only its message is shown, without a stack. */
export class OperationalError extends Error {
  override readonly name = 'OperationalError';
}

export function describeError(error: unknown): string {
  if (getErrorCode(error) === 'ENOSPC') return 'the disk is full';
  if (!isObject(error) || !('message' in error)) return String(error);
  // `fetch failed` alone does not help.
  const cause = 'cause' in error && error.cause !== undefined ? describeError(error.cause) : '';
  return cause === '' || cause === error.message
    ? `${error.message}`
    : `${error.message}: ${cause}`;
}

export function getErrorCode(error: unknown): string | undefined {
  if (!isObject(error) || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

export function isMissingFile(error: unknown): boolean {
  return getErrorCode(error) === 'ENOENT';
}

/** `instanceof Error` fails in tests, where Node's errors belong to another realm. */
function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
