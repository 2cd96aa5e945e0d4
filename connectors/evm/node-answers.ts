import { BaseError } from 'viem';

/** Refusal or silence of the node, without its URL, which may hold a key, or anything sent to it. */
export class NodeFailure extends Error {
  override readonly name = 'NodeFailure';
}

/** Fate of bytes that were broadcast. `held`: the node has them, or has put them into a block. */
export type Broadcast = { outcome: 'held' } | { outcome: 'refused'; reason: string };

/** Asks the node. @throws NodeFailure in place of any other error */
export async function askNode<T>(question: string, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    throw new NodeFailure(`The node did not answer ${question}: ${getErrorName(error)}`);
  }
}

/** Kind of an error, which quotes neither the URL nor the request. */
function getErrorName(error: unknown): string {
  if (!(error instanceof BaseError)) return error instanceof Error ? error.name : 'no error';
  const root = error.walk();
  return root instanceof BaseError ? root.name : error.name;
}

/** Answers undefined in place of an error of that name. */
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

/** Reads a node's answer to bytes that it did not take; undefined where it has not answered. */
export function toRefusal(error: unknown): Broadcast | undefined {
  if (!(error instanceof BaseError)) return undefined;
  // An error of JSON-RPC is the node's own word; all others say that it could not be asked.
  if (error.walk((each) => isNamed(each, 'RpcRequestError')) === null) return undefined;
  const { details } = error;
  if (/already ?(known|imported)|known transaction/i.test(details)) return { outcome: 'held' };
  return { outcome: 'refused', reason: details.slice(0, 200) };
}
