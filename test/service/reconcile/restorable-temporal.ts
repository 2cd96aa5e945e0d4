import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../../stack/ports';
import { cacheDirectory, provision, temporalCli } from '../../../stack/provision';
import { startTemporal } from '../../../stack/temporal-server';
import { silentProgress } from '../../../stack/terminal';

const FILES = ['temporal.db', 'temporal.db-wal', 'temporal.db-shm'];

/** A Temporal server whose file can be copied and put back; it keeps its address. */
export async function openRestorableTemporal() {
  const { signal } = new AbortController();
  const context = { cacheDir: cacheDirectory(process.env), env: process.env, signal };
  const found = await provision(temporalCli, { ...context, progress: silentProgress });
  const folder = mkdtempSync(join(tmpdir(), 'restorable-temporal-'));
  const port = await freePort();
  const start = () =>
    startTemporal({
      executable: found.path,
      dbFile: join(folder, FILES[0] ?? ''),
      port,
      logFile: join(folder, 'temporal.log'),
    });
  let server = await start();
  const whileStopped = async (work: () => void) => {
    await server.stop();
    work();
    server = await start();
  };
  return {
    address: server.address,
    backUp: () =>
      whileStopped(() => {
        for (const file of FILES) copy(join(folder, file), join(folder, `${file}.kept`));
      }),
    restore: () =>
      whileStopped(() => {
        for (const file of FILES) copy(join(folder, `${file}.kept`), join(folder, file));
      }),
    close: async () => {
      await server.stop();
      rmSync(folder, { recursive: true });
    },
  };
}

/** Copies a file; where there is none, there is none afterwards. */
function copy(from: string, to: string): void {
  rmSync(to, { force: true });
  if (existsSync(from)) cpSync(from, to);
}
