import type { Child } from '../../stack/child-process';
import { type Supervisor, supervise } from '../../stack/supervisor';
import type { Part } from './processes';

/** Pause before a process that has ended is started again. */
const PAUSE_MS = 2_000;
const WAITS = { backoffMsMin: PAUSE_MS, backoffMsMax: PAUSE_MS, steadyMs: 0 };

export type Supervised = ReturnType<typeof superviseProcesses>;

/**
 * Runs processes as an orchestrator does: each that ends is started again after two seconds. `pids`
 * has those of the latest start.
 */
export function superviseProcesses(signal: AbortSignal) {
  const supervisors: Supervisor[] = [];
  const pids: Record<string, number> = {};
  const recordPid = ({ name, start }: Part): Part => ({
    name,
    start: async (stopping): Promise<Child> => {
      const child = await start(AbortSignal.any([signal, stopping]));
      pids[child.name] = child.pid;
      return child;
    },
  });
  return {
    died: new Promise<never>(() => {}),
    pids,
    start: async (parts: readonly Part[]): Promise<void> => {
      const supervisor = supervise([parts.map(recordPid)], () => {}, WAITS);
      supervisors.push(supervisor);
      await supervisor.start();
    },
    /** Ends a part as its orchestrator does, and starts it again at once. */
    restart: async (name: string): Promise<void> => {
      await Promise.all(supervisors.map((supervisor) => supervisor.restart(name)));
    },
    /** Stops the parts that started last first. */
    stop: async (): Promise<void> => {
      for (const supervisor of supervisors.reverse()) await supervisor.stop();
    },
  };
}
