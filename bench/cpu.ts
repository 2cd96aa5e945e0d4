import { readFileSync } from 'node:fs';

/** Unit in which Linux tells other programs of processor time: a hundredth of a second. */
const TICK_MS = 10;
/**
 * Indexes in /proc/PID/stat of user and system time, counted after the name, which may itself hold
 * spaces.
 */
const USER_FIELD = 11;
const SYSTEM_FIELD = 12;

/** Processor time in ms by process name; a process that can't be read is left out. */
export type CpuTimes = Record<string, number>;

export function readCpu(pids: Readonly<Record<string, number>>): CpuTimes {
  const times: CpuTimes = {};
  for (const [name, pid] of Object.entries(pids)) {
    const ms = cpuOf(pid);
    if (ms !== undefined) times[name] = ms;
  }
  return times;
}

/** Reads a process's time; undefined where there is no /proc, as on macOS, or no such process. */
function cpuOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[USER_FIELD]) + Number(fields[SYSTEM_FIELD])) * TICK_MS;
  } catch {
    return undefined;
  }
}
