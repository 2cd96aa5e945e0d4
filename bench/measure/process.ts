import { readFileSync } from 'node:fs';
import type { Counts } from './statistics';

/** Unit in which Linux counts processor time: a hundredth of a second. */
const TICK_MS = 10;
/** Indexes in /proc/PID/stat, counted after the name, which may itself contain spaces. */
const USER_FIELD = 11;
/** User and system time, each of the process itself, then of its children that have ended. */
const TIME_FIELDS = 4;

export type Pids = Readonly<Record<string, number>>;

/**
 * Reads processor time in ms by process, with that of its children that have ended; without /proc,
 * as on macOS, there is none.
 */
export function readCpu(pids: Pids): Counts {
  const times = Object.entries(pids).map(([name, pid]) => [name, readTime(pid)] as const);
  return Object.fromEntries(times.filter(([, ms]) => !Number.isNaN(ms)));
}

function readTime(pid: number): number {
  const stat = readProc(pid, 'stat');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const ticks = fields.slice(USER_FIELD, USER_FIELD + TIME_FIELDS).map(Number);
  return ticks.length < TIME_FIELDS
    ? Number.NaN
    : ticks.reduce((sum, each) => sum + each, 0) * TICK_MS;
}

export function cpuSince(before: Counts, pids: Pids, count: number): Counts {
  return Object.fromEntries(
    Object.entries(readCpu(pids)).map(([name, ms]) => [name, (ms - (before[name] ?? ms)) / count]),
  );
}

/** Reads a process's memory in MiB; null without /proc. */
export function readMemory(pid: number): number | null {
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readProc(pid, 'status'))?.[1];
  return kib === undefined ? null : Math.round(Number(kib) / 1_024);
}

function readProc(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return '';
  }
}
