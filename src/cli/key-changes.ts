import { statSync } from 'node:fs';
import { ENVIRONMENTS } from '../domain/task-queues';
import { lockKeyFile } from '../keys/file';
import { ringPath } from '../keys/recipient-rings';
import { LOOK_EVERY_MS } from '../keys/source';
import { StackFailure } from '../os/failure';
import type { Audit } from '../store/audit';
import { reasonOf } from '../temporal/in-time';
import { CliFailure } from './failure';

/**
 * Longest write of a running process: two tries, each of 2 s for a connection, 2 s to find the
 * database and 5 s to hear from it. @see src/mongo.ts
 */
const WRITE_MS_MAX = 18_000;

/**
 * Time after which nothing made with an earlier key is written any more: every process has read the
 * file by then, and the values that it had made before are stored or given up.
 */
const SETTLED_MS = LOOK_EVERY_MS + WRITE_MS_MAX;

/** Owner of a line about the installation. */
export const OF_ALL = { account_id: null, livemode: null } as const;

/** Dependencies of every change of a key file. */
export interface KeyFileDeps {
  audit: Audit;
  /** Path of a usable key file. */
  keysFile: string;
  /** Folder of the rings that recipients have of their own; undefined without any. */
  keysDir: string | undefined;
  now: () => Date;
  wait: (ms: number) => Promise<void>;
  progress: (line: string) => void;
}

/** Waits until no process uses an earlier key for what is new, by the time of the file itself. */
export async function settled(deps: KeyFileDeps): Promise<void> {
  const { now, wait, progress } = deps;
  const age = Math.max(0, now().getTime() - lastChange(deps));
  const left = Math.ceil(SETTLED_MS - age);
  if (left <= 0) return;
  progress(
    `waiting ${Math.ceil(left / 1_000)} s: until then a running process may still store what it ` +
      'sealed with the keys as they were',
  );
  await wait(left);
}

/** Time of the last change of a file that processes seal by, in ms. */
function lastChange({ keysFile, keysDir: dir }: KeyFileDeps): number {
  const own =
    dir === undefined
      ? []
      : ENVIRONMENTS.map((environment) => ringPath(dir, environment, 'public'));
  return Math.max(...[keysFile, ...own].map((path) => statSync(path).mtimeMs));
}

/** Does the work while no other process changes the file. @throws CliFailure `keys_file_busy` */
export async function locked<T>(
  { keysFile }: Pick<KeyFileDeps, 'keysFile'>,
  work: () => Promise<T>,
): Promise<T> {
  const release = changing(() => lockKeyFile(keysFile));
  try {
    return await work();
  } finally {
    release();
  }
}

/** Runs a change of the file, and turns its failures into the command line's. */
export function changing<T>(change: () => T): T {
  try {
    return change();
  } catch (error) {
    if (error instanceof StackFailure) throw new CliFailure('keys_file_busy', error.message);
    const message = `The key file can not be changed: ${reasonOf(error)}`;
    throw new CliFailure('keys_file_not_written', message);
  }
}

/** @throws CliFailure `sealing_key_not_found`, `sealing_key_current` */
export function checkRetirable(
  { current, keys }: { current: string; keys: object },
  kid: string,
  rotate: string,
): void {
  if (!Object.hasOwn(keys, kid)) {
    throw new CliFailure('sealing_key_not_found', `There is no key ${kid} in the key file.`);
  }
  if (kid === current) {
    const message = `${kid} is the current key: \`${rotate}\` makes another one.`;
    throw new CliFailure('sealing_key_current', message);
  }
}
