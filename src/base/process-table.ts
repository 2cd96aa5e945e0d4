import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { getErrorCode } from './errors';

const POLL_MS = 50;

/** Counts a zombie as ended. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return getErrorCode(error) === 'EPERM';
  }
  return statFields(pid)?.state !== 'Z';
}

export function readCommandLine(pid: number): string {
  if (process.platform === 'linux') {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').join(' ').trim();
    } catch {
      return '';
    }
  }
  return ps(pid, 'command');
}

export function listProcessIds(): number[] {
  const names =
    process.platform === 'linux'
      ? readdirSync('/proc')
      : (spawnSync('ps', ['-axo', 'pid='], { encoding: 'utf8' }).stdout ?? '').split('\n');
  return names.map((name) => Number(name.trim())).filter((pid) => pid > 0);
}

/** Distinguishes the process from a later one with the same id. */
export function getStartTime(pid: number): string {
  if (process.platform === 'linux') return statFields(pid)?.startTicks ?? '';
  return ps(pid, 'lstart');
}

/** Sends SIGTERM, then SIGKILL after `graceMs`. @returns false if it still runs */
export async function terminate(pid: number, graceMs: number): Promise<boolean> {
  if (!signal(pid, 'SIGTERM')) return true;
  if (await waitUntilGone(pid, graceMs)) return true;
  signal(pid, 'SIGKILL');
  return await waitUntilGone(pid, 5_000);
}

export function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    process.kill(pid, name);
    return true;
  } catch {
    return false;
  }
}

async function waitUntilGone(pid: number, withinMs: number): Promise<boolean> {
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
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { state: fields[0] ?? '', startTicks: fields[19] ?? '' };
  } catch {
    return undefined;
  }
}

function ps(pid: number, column: string): string {
  const result = spawnSync('ps', ['-o', `${column}=`, '-p', String(pid)], { encoding: 'utf8' });
  return result.stdout?.trim() ?? '';
}
