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

const LOG_BYTES_MAX = 50 * 1024 * 1024;
const TAIL_BYTES = 8 * 1024;

/**
 * The child appends by itself, so that nothing is lost if the launcher ends first.
 * @returns file descriptor for the caller to close
 */
export function openLog(path: string): number {
  mkdirSync(dirname(path), { recursive: true });
  if (getSize(path) > LOG_BYTES_MAX / 5) renameSync(path, `${path}.1`);
  return openSync(path, 'a', 0o600);
}

/** Rotates a log in use: its writer appends. */
export function boundLog(path: string, bytesMax = LOG_BYTES_MAX): void {
  if (getSize(path) <= bytesMax) return;
  copyFileSync(path, `${path}.1`);
  truncateSync(path, 0);
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
