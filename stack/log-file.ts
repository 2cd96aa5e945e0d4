import {
  closeSync,
  copyFileSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { describeError, getErrorCode } from '../src/base/errors';

const LOG_BYTES_MAX = 50 * 1024 * 1024;
const TAIL_BYTES = 8 * 1024;
/** Codes of a full disk, or quota. */
const FULL = ['ENOSPC', 'EDQUOT'];

/**
 * The child appends by itself, so that nothing is lost if the launcher ends first.
 * @returns file descriptor for the caller to close
 */
export function openLog(path: string): number {
  mkdirSync(dirname(path), { recursive: true });
  if (getSize(path) > LOG_BYTES_MAX / 5) renameSync(path, `${path}.1`);
  return openSync(path, 'a', 0o600);
}

/**
 * Rotates a log in use: its writer appends. On a full disk it drops the lines, which would take the
 * last space of the databases.
 */
export function boundLog(path: string, bytesMax = LOG_BYTES_MAX, copy = copyFileSync): void {
  if (getSize(path) <= bytesMax) return;
  const previous = `${path}.1`;
  try {
    copy(path, previous);
  } catch (error) {
    if (!FULL.includes(String(getErrorCode(error)))) throw error;
    rmSync(previous, { force: true });
  }
  truncateSync(path, 0);
}

/**
 * Bounds logs in use.
 * @returns function for a timer, which never throws, and reports the first failure of each log
 */
export function createLogCheck(
  paths: readonly string[],
  report: (text: string) => void,
  bytesMax = LOG_BYTES_MAX,
): () => void {
  const failed = new Set<string>();
  return () => {
    for (const path of paths) {
      try {
        boundLog(path, bytesMax);
        failed.delete(path);
      } catch (error) {
        if (!failed.has(path)) report(`${path} grows: ${describeError(error)}`);
        failed.add(path);
      }
    }
  };
}

export function lastLines(path: string, count = 5): string {
  const bytes = getSize(path);
  if (bytes === 0) return '';
  const length = Math.min(bytes, TAIL_BYTES);
  const buffer = Buffer.alloc(length);
  const file = openSync(path, 'r');
  try {
    readSync(file, buffer, 0, length, bytes - length);
  } finally {
    closeSync(file);
  }
  return buffer
    .toString()
    .trim()
    .split('\n')
    .slice(-count)
    .map((line) => line.slice(0, 300))
    .join('\n');
}

function getSize(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
