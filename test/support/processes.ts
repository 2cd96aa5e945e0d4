import { randomUUID } from 'node:crypto';
import { useFixture } from './fixture';

type RecordsModule = typeof import('./records');

/** The activities of one worker process, with what calls them. */
export type WorkerProcess = RecordsModule & {
  records: Awaited<ReturnType<RecordsModule['openRecords']>>;
};

export interface Processes {
  left: WorkerProcess;
  right: WorkerProcess;
  close(): Promise<void>;
}

/**
 * Activities of two worker processes on one database. Each has modules of its own, so neither knows
 * of the other's turns, and they meet in MongoDB alone.
 */
export async function openProcesses(uri?: string): Promise<Processes> {
  const database = `test_${randomUUID().slice(0, 8)}`;
  const left = await openProcess(uri, database);
  const right = await openProcess(uri, database);
  return {
    left,
    right,
    close: async () => {
      await left.records.close();
      await right.records.close();
    },
  };
}

async function openProcess(uri: string | undefined, database: string): Promise<WorkerProcess> {
  let loaded: RecordsModule | undefined;
  jest.isolateModules(() => {
    loaded = jest.requireActual<RecordsModule>('./records');
  });
  if (loaded === undefined) throw new Error('The modules were not loaded.');
  return { ...loaded, records: await loaded.openRecords(uri, database) };
}

export function useProcesses(): Processes {
  return useFixture(openProcesses, (processes) => processes.close());
}
