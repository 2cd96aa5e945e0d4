import type { Environment } from '../domain/task-queues';
import { SealError, type Sealed, type Sealer } from '../keys/seal';
import type { Stores } from '../store';

export type SealedStores = Pick<
  Stores,
  'accounts' | 'recipients' | 'endpoints' | 'idempotency' | 'users' | 'connectorKeys'
>;

/** Sealer, with the name of its current key. */
export interface CurrentSealer {
  sealer: Sealer;
  kid: string;
}

export interface ResealDeps extends CurrentSealer {
  stores: SealedStores;
  /** Sealer that opens whatever there is, and seals with the key file's current key. */
  sealer: Sealer;
  /** Those that seal recipients: the one above, unless they have rings of their own. */
  recipients: Record<Environment, CurrentSealer>;
  now: () => Date;
  /** Tells a line to the person who waits. */
  progress: (line: string) => void;
}

/** Seals a value anew; undefined when no key of the ring opens it: it is named once, and left. */
export async function resealed(
  { sealer, progress }: ResealDeps,
  unopened: Set<string>,
  sealed: Sealed,
  owner: string,
  sealing = sealer,
): Promise<Sealed | undefined> {
  try {
    return await sealing.seal(await sealer.open(sealed, owner), owner);
  } catch (error) {
    if (!(error instanceof SealError)) throw error;
    if (!unopened.has(owner)) progress(`${owner} can not be opened with this key file`);
    unopened.add(owner);
    return undefined;
  }
}

export function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
