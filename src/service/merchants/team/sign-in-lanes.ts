import { createNamedGates } from '../../../base/gate';

/** Shared by all strangers; waiting attempts are a second of work, four with the rests. */
const STRANGERS = { atOnce: 1, waitingMax: 20, rest: 3 } as const;
/** Limits of one browser in which a user has signed in. */
const DEVICE = { atOnce: 1, waitingMax: 10 } as const;

const EVERYBODY = 'strangers';

/** @returns null when too many wait already */
export type SignInLanes = <T>(
  device: string | null,
  attempt: () => Promise<T>,
) => Promise<T | null>;

/**
 * Separates strangers from browsers that have signed in, in one process: a flood must take neither
 * the connections to MongoDB nor the thread that compares passwords.
 * @see docs/dashboard.md#sign-in
 */
export function createSignInLanes(): SignInLanes {
  const strangers = createNamedGates(STRANGERS);
  const devices = createNamedGates(DEVICE);
  /** @param device hash of the device cookie, if its signature is ours */
  return async (device, attempt) => {
    const [lane, name] = device === null ? [strangers, EVERYBODY] : [devices, device];
    return lane.isFull(name) ? null : await lane.run(name, attempt);
  };
}
