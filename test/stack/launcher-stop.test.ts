import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { freePort, isPortFree } from '../../stack/ports';
import { eventually } from '../support/http';

/** Program that `npm start` runs once it has built. */
const MAIN = resolve('dist/stack/main.js');

test('a stop while the servers start begins no other part and leaves nothing running', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'stack-stop-'));
  const log = (part: string) => join(dataDir, 'logs', `${part}.log`);
  const child = spawn(process.execPath, [MAIN], {
    env: {
      ...{ PATH: process.env['PATH'], HOME: process.env['HOME'], DATA_DIR: dataDir },
      ...{ PORT: String(await freePort()), SANDBOX_BANK_PORT: String(await freePort()) },
      TEMPORAL_UI_PORT: String(await freePort()),
    },
    stdio: 'ignore',
  });
  const exited = new Promise<number | null>((done) => child.once('close', done));
  try {
    await eventually('the first server', async () => existsSync(log('mongodb')));
    child.kill('SIGTERM');
    expect(await exited).toBe(0);
    expect(existsSync(log('worker'))).toBe(false);
    const ports: Record<string, number> = JSON.parse(
      readFileSync(join(dataDir, 'ports.json'), 'utf8'),
    );
    const isFree = await Promise.all(Object.values(ports).map(isPortFree));
    expect(isFree).not.toContain(false);
  } finally {
    child.kill('SIGTERM');
    await exited;
    rmSync(dataDir, { recursive: true });
  }
});
