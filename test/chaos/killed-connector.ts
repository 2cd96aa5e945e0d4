import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { type Child, startChild } from '../../stack/child-process';
import { eventually } from '../support/eventually';
import { useFixture } from '../support/fixture';
import { mongodbUri, temporalAddress } from '../support/servers';
import type { Service } from '../support/service';
import { noteForFailure } from '../support/test-log';

const DIES_MS_MAX = 90_000;
/** An attempt that was killed may be followed after a minute, and another one after it. */
export const ENDS_MS_MAX = 240_000;

interface Connector<B> {
  /** Directory of its process in `connectors/`. */
  process: string;
  name: string;
  /** As `SANDBOX_CONNECTORS`; the prefix is that of its task queue. */
  serves: string;
  prefix: string;
  /** Starts the bank. @returns it, and the connector's own variables */
  open: (file: (name: string, content: string) => string) => Promise<{ bank: B; env: object }>;
}

interface Death {
  /** Words for what runs when it dies. */
  at: string;
  /** Arguments of `die-at.ts`; absent: the bank holds a request, amid which it dies. */
  step?: readonly string[] | undefined;
  hold: (dies: () => Promise<void>) => void;
  act: () => Promise<unknown>;
}

/** A connector as a process that is killed between every two of its steps, and its bank. */
export function useKilledConnector<B extends { stop: () => Promise<void> }>(
  service: Service,
  { process: folderName, name, prefix, serves, open }: Connector<B>,
) {
  return useFixture(
    async () => {
      const folder = mkdtempSync(join(tmpdir(), 'killed-'));
      const file = (of: string, content: string): string => {
        writeFileSync(join(folder, of), content, { mode: 0o600 });
        return join(folder, of);
      };
      const { bank, env } = await open(file);
      const logFile = join(folder, 'log');
      let child: Child | undefined;
      const start = async (...dieAt: string[]): Promise<Child> => {
        const loads = ['test/support/register.js', 'test/chaos/die-at.ts'];
        const main = resolve('connectors', folderName, 'main.ts');
        child = await startChild({
          ...{ name, command: process.execPath, logFile, ipc: true, graceMs: 30_000 },
          args: [...loads.flatMap((each) => ['--require', resolve(each)]), main],
          env: {
            ...{ PATH: process.env['PATH'], SANDBOX_CONNECTORS: serves, TASK_QUEUE_PREFIX: prefix },
            ...{ MONGODB_URI: mongodbUri(), MONGODB_DB: service.database },
            ...{ TEMPORAL_ADDRESS: temporalAddress(), KEYS_DIR: service.keysDir },
            ...{ CONNECTOR_STATE_DIR: join(folder, 'state'), DIE_AT: JSON.stringify(dieAt) },
            ...env,
          },
        });
        return child;
      };
      return {
        bank,
        start,
        /** Has the process die while something acts. */
        killAt: async ({ at, step, hold, act }: Death): Promise<void> => {
          const killed = await start(...(step ?? []));
          if (step === undefined) {
            hold(async () => {
              killed.kill();
              await killed.exited;
            });
          }
          const dies = async () => killed.hasExited() && killed.exited;
          const death = eventually(`a death at ${at}`, dies, DIES_MS_MAX);
          const [how] = await Promise.all([death, act()]);
          expect({ at, how }).toEqual({ at, how: 'was ended by SIGKILL' });
        },
        stop: async () => {
          noteForFailure(readFileSync(logFile, 'utf8').slice(-3_000));
          await child?.stop();
          await bank.stop();
          await service.mongo.db(`${service.database}_${name}`).dropDatabase();
          rmSync(folder, { recursive: true });
        },
      };
    },
    ({ stop }) => stop(),
  );
}
