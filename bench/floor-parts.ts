import { join } from 'node:path';
import { startChild } from '../stack/child-process';
import type { StackConfig } from '../stack/config';
import { logOf, type Part } from './processes';

const FLOOR_GRACE_MS = 4_000;

/** Settings of the floor's processes, beside those of the product's. */
export function floorSettings(floor: { port: number; db: string; receiverUrl: string }) {
  return {
    FLOOR_PORT: String(floor.port),
    FLOOR_DB: floor.db,
    FLOOR_RECEIVER_URL: floor.receiverUrl,
  };
}

/** The floor's processes: its worker, its bank and its HTTP front. */
export function floorParts(config: StackConfig, env: NodeJS.ProcessEnv): Part[] {
  return (['worker', 'bank', 'front'] as const).map((what) => {
    const name = `floor_${what}`;
    const child = {
      name,
      command: process.execPath,
      args: [join(__dirname, 'floor', `${what}.js`)],
      env,
      logFile: logOf(config, name),
      ipc: true,
      graceMs: FLOOR_GRACE_MS,
    };
    return { name, start: () => startChild(child) };
  });
}
