import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { errorCode } from './failure';

const POLL_MS = 50;

/** Whether a process of this id exists and is not a zombie waiting for its parent. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return errorCode(error) === 'EPERM';
  }
  return statFields(pid)?.state !== 'Z';
}

/** Command line, its arguments joined by spaces; empty when there is no such process. */
export function commandLine(pid: number): string {
  if (process.platform === 'linux') {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').join(' ').trim();
    } catch {
      return '';
    }
  }
  return ps(pid, 'command');
}

/** Lists the processes of this machine that this user may see. */
export function processIds(): number[] {
  const names =
    process.platform === 'linux'
      ? readdirSync('/proc')
      : (spawnSync('ps', ['-axo', 'pid='], { encoding: 'utf8' }).stdout ?? '').split('\n');
  return names.map((name) => Number(name.trim())).filter((pid) => pid > 0);
}

/** Mark that tells a process from a later one with the same id. */
export function birthMark(pid: number): string {
  if (process.platform === 'linux') return statFields(pid)?.startTicks ?? '';
  return ps(pid, 'lstart');
}

/**
 * Ends a process: SIGTERM, then SIGKILL after `graceMs`.
 * @returns false when it is still there, which only an unkillable process is.
 */
export async function terminate(pid: number, graceMs: number): Promise<boolean> {
  if (!signal(pid, 'SIGTERM')) return true;
  if (await gone(pid, graceMs)) return true;
  signal(pid, 'SIGKILL');
  return await gone(pid, 5_000);
}

/** Sends a signal; false when the process is no more. */
export function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    process.kill(pid, name);
    return true;
  } catch {
    return false;
  }
}

async function gone(pid: number, withinMs: number): Promise<boolean> {
  const deadline = Date.now() + withinMs;
  while (isAlive(pid)) {
    if (Date.now() > deadline) return false;
    await sleep(POLL_MS);
  }
  return true;
}

function statFields(pid: number): { state: string; startTicks: string } | undefined {
  if (process.platform !== 'linux') return undefined;
  try {
    // The name in parentheses may hold spaces: fields are counted from behind it.
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { state: fields[0] ?? '', startTicks: fields[19] ?? '' };
  } catch {
    return undefined;
  }
}

function ps(pid: number, column: string): string {
  const shown = spawnSync('ps', ['-o', `${column}=`, '-p', String(pid)], { encoding: 'utf8' });
  return shown.stdout?.trim() ?? '';
}
