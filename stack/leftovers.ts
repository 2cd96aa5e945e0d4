import { join } from 'node:path';
import { isAlive, listProcessIds, readCommandLine, terminate } from '../src/base/process-table';
import { assertNever } from '../src/domain/assert';
import { PART_NAMES, type PartName, readState, removeState } from './state-file';

const GRACE_MS = 8_000;

function getCommandText(part: PartName, dataDir: string): string {
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
      return 'sandbox/main.js';
    case 'sepa':
      return 'sepa/main.js';
    default:
      return assertNever(part);
  }
}

/**
 * Ends what a killed launcher has left running. The command line must fit, since the id may belong
 * to another program by now. The caller holds the directory's lock.
 * @returns the names of the ended parts
 */
export async function endLeftovers(dataDir: string): Promise<PartName[]> {
  const state = readState(dataDir);
  const endedParts: PartName[] = [];
  for (const part of PART_NAMES) {
    const storedPid = state?.[part]?.pid ?? null;
    const isServer = part === 'mongodb' || part === 'temporal';
    const candidates = isServer ? listProcessIds() : storedPid === null ? [] : [storedPid];
    for (const pid of candidates) {
      if (!isAlive(pid) || !readCommandLine(pid).includes(getCommandText(part, dataDir))) continue;
      await terminate(pid, GRACE_MS);
      endedParts.push(part);
    }
  }
  removeState(dataDir);
  return endedParts;
}
