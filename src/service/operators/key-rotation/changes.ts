import { statSync } from 'node:fs';
import { describeError, OperationalError } from '../../../base/errors';
import { ServiceError } from '../../../domain/errors';
import { POLL_EVERY_MS } from '../../../encryption/followed-file';
import { lockKeyFile } from '../../../encryption/key-file';
import { keyRingPath, listHolders } from '../../../encryption/recipient-pairs';
import type { Connectors } from '../../../routing';
import type { Audit } from '../../../store/audit';

/**
 * Two attempts, each with 2 s for a connection, 2 s to select a server and 5 s for its response.
 * @see src/base/mongo.ts
 */
export const WRITE_MS_MAX = 18_000;

/** Time in which every process reads the changed file, and stores or drops earlier values. */
const SETTLE_MS = POLL_EVERY_MS + WRITE_MS_MAX;

export const INSTALLATION = { account_id: null, livemode: null } as const;

export interface KeyFileDeps {
  audit: Audit;
  keysFile: string;
  keysDir: string;
  /** Says who may pay a recipient, as in the API. */
  connectors: Pick<Connectors, 'listConnectors'>;
  now: () => Date;
  wait: (ms: number) => Promise<void>;
  progress: (line: string) => void;
}

/** Waits until no process encrypts with an earlier key. */
export async function waitUntilSettled(deps: KeyFileDeps): Promise<void> {
  const { keysFile, keysDir } = deps;
  const publicFiles = listHolders(keysDir).map((each) => keyRingPath(keysDir, each, 'public'));
  const changedAt = Math.max(...[keysFile, ...publicFiles].map((path) => statSync(path).mtimeMs));
  await waitSince(deps, changedAt, SETTLE_MS);
}

/** @param changedAt ms since the epoch */
export async function waitSince(
  { now, wait, progress }: Pick<KeyFileDeps, 'now' | 'wait' | 'progress'>,
  changedAt: number,
  settleMs: number,
): Promise<void> {
  const age = Math.max(0, now().getTime() - changedAt);
  const remainingMs = Math.ceil(settleMs - age);
  if (remainingMs <= 0) return;
  progress(
    `waiting ${Math.ceil(remainingMs / 1_000)} s: until then a running process may still store values ` +
      'that it encrypted with earlier keys',
  );
  await wait(remainingMs);
}

/** @throws ServiceError `keys_file_busy` while another process changes the keys */
export async function withKeyFileLock<T>(
  { keysFile }: Pick<KeyFileDeps, 'keysFile'>,
  work: () => Promise<T>,
): Promise<T> {
  const release = changeKeyFile(() => lockKeyFile(keysFile));
  try {
    return await work();
  } finally {
    release();
  }
}

/** @throws ServiceError `keys_file_busy`, `keys_file_not_written` */
export function changeKeyFile<T>(change: () => T): T {
  try {
    return change();
  } catch (error) {
    if (error instanceof OperationalError) throw new ServiceError('keys_file_busy', error.message);
    const message = `The key file cannot be changed: ${describeError(error)}`;
    throw new ServiceError('keys_file_not_written', message);
  }
}
