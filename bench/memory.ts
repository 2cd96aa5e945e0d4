import { readFileSync } from 'node:fs';

/** Memory of a process in MiB: what it holds, or has held at most; undefined without /proc. */
export function memoryOf(pid: number, which: 'now' | 'most'): number | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const line = which === 'now' ? /^VmRSS:\s+(\d+) kB$/m : /^VmHWM:\s+(\d+) kB$/m;
    const kib = line.exec(status)?.[1];
    return kib === undefined ? undefined : Math.round(Number(kib) / 1_024);
  } catch {
    return undefined;
  }
}
