import { join } from 'node:path';
import { startChild } from '../../stack/child-process';
import type { StackConfig } from '../../stack/config';
import { WORKER_FLAG } from '../../stack/parts';
import { logPath, type Part } from '../servers/processes';

const FLOOR_GRACE_MS = 4_000;

export function floorParts(
  config: StackConfig,
  { port, db, receiverUrl }: { port: number; db: string; receiverUrl: string },
  productEnv: NodeJS.ProcessEnv,
): Part[] {
  const env = {
    ...productEnv,
    ...{ FLOOR_PORT: String(port), FLOOR_DB: db, FLOOR_RECEIVER_URL: receiverUrl },
  };
  return (['worker', 'bank', 'front'] as const).map((what) => {
    const name = `floor_${what}`;
    const child = {
      name,
      command: process.execPath,
      // As the product's processes, so that only the work differs.
      args: [
        '--enable-source-maps',
        ...(what === 'worker' ? [WORKER_FLAG] : []),
        join(__dirname, `${what}.js`),
      ],
      env,
      logFile: logPath(config, name),
      ipc: true,
      graceMs: FLOOR_GRACE_MS,
    };
    return { name, start: () => startChild(child) };
  });
}
