import { join } from 'node:path';
import { assertNever } from '../src/domain/assert';
import { commandLine, isAlive, processIds, terminate } from '../src/os/process-table';
import { PART_NAMES, type PartName, readState, removeState } from './state-file';

const GRACE_MS = 8_000;

/** Text that the command line of a part holds; for a server it names this very data folder. */
function markOf(part: PartName, dataDir: string): string {
  switch (part) {
    case 'mongodb':
      return `--dbpath ${join(dataDir, 'mongodb')} `;
    case 'temporal':
      return `--db-filename ${join(dataDir, 'temporal', 'temporal.db')} `;
    case 'api':
      return 'src/main.js';
    case 'worker':
      return 'worker/main.js';
    case 'sandbox_bank':
      return 'sandbox-bank/main.js';
    default:
      return assertNever(part);
  }
}

/**
 * Ends the processes that a killed launcher has left running: those named in stack.json, and
 * servers on this data folder that had not come up yet. Only a process whose command line fits is
 * ended, since its id may belong to another program by now. The caller holds the lock of the
 * folder.
 * @returns the names of the parts that were ended.
 */
export async function endLeftovers(dataDir: string): Promise<PartName[]> {
  const state = readState(dataDir);
  const ended: PartName[] = [];
  for (const part of PART_NAMES) {
    const known = state?.[part].pid ?? null;
    const isServer = part === 'mongodb' || part === 'temporal';
    const candidates = isServer ? processIds() : known === null ? [] : [known];
    for (const pid of candidates) {
      if (!isAlive(pid) || !commandLine(pid).includes(markOf(part, dataDir))) continue;
      await terminate(pid, GRACE_MS);
      ended.push(part);
    }
  }
  removeState(dataDir);
  return ended;
}
