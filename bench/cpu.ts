import { readFileSync } from 'node:fs';

/** Linux tells other programs of processor time in hundredths of a second. */
const TICK_MS = 10;
/** Fields of /proc/PID/stat after the name, which may itself hold spaces: user and system time. */
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

/** Undefined where there is no /proc, as on macOS, or no such process. */
function cpuOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[USER_FIELD]) + Number(fields[SYSTEM_FIELD])) * TICK_MS;
  } catch {
    return undefined;
  }
}
