import { BaseError } from 'viem';

/** Excludes the node's URL, which may contain a key, and the request. */
export class NodeFailure extends Error {
  override readonly name = 'NodeFailure';
}

/** `held`: the node has the bytes, or a block does. */
export type Broadcast = { outcome: 'held' } | { outcome: 'refused'; reason: string };

/** @throws NodeFailure instead of any other error */
export async function askNode<T>(question: string, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    throw new NodeFailure(`The node did not answer ${question}: ${getErrorName(error)}`);
  }
}

/** The message would quote the URL or the request. */
function getErrorName(error: unknown): string {
  if (!(error instanceof BaseError)) return error instanceof Error ? error.name : 'no error';
  const root = error.walk();
  return root instanceof BaseError ? root.name : error.name;
}

export async function orUndefined<T>(name: string, ask: () => Promise<T>): Promise<T | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof BaseError && error.walk((each) => isNamed(each, name)) !== null) {
      return undefined;
    }
    throw error;
  }
}

function isNamed(error: unknown, name: string): boolean {
  return error instanceof Error && error.name === name;
}

/** @returns undefined if the node has not answered */
export function toRefusal(error: unknown): Broadcast | undefined {
  if (!(error instanceof BaseError)) return undefined;
  // A JSON-RPC error is the node's answer; all others mean that it was not reached.
  if (error.walk((each) => isNamed(each, 'RpcRequestError')) === null) return undefined;
  const { details } = error;
  if (/already ?(known|imported)|known transaction/i.test(details)) return { outcome: 'held' };
  return { outcome: 'refused', reason: details.slice(0, 200) };
}
