import {
  closeSync,
  copyFileSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  statSync,
  truncateSync,
} from 'node:fs';
import { dirname } from 'node:path';

/**
 * Size at which a log is set aside; with the one older file, a part's logs hold no more than about
 * twice this.
 */
const LOG_BYTES_MAX = 50 * 1024 * 1024;
const TAIL_BYTES = 8 * 1024;

/**
 * Opens a log for a child process to append to by itself, so that nothing is lost when the launcher
 * ends first. A big log is set aside as `.1`.
 * @returns a file descriptor, to be closed by the caller once the child has it.
 */
export function openLog(path: string): number {
  mkdirSync(dirname(path), { recursive: true });
  if (getSize(path) > LOG_BYTES_MAX / 5) renameSync(path, `${path}.1`);
  return openSync(path, 'a', 0o600);
}

/** Keeps a log within its bound while it is written to; its writer appends, so it may go on. */
export function boundLog(path: string, bytesMax = LOG_BYTES_MAX): void {
  if (getSize(path) <= bytesMax) return;
  copyFileSync(path, `${path}.1`);
  truncateSync(path, 0);
}

/** The last lines of a log, for an error message; empty when there is none. */
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
