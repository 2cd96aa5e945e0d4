import { join } from 'node:path';
import { OperationalError } from '../../src/base/errors';
import type { Child } from '../../stack/child-process';
import type { StackConfig } from '../../stack/config';
import { lastLines } from '../../stack/log-file';

export interface Part {
  name: string;
  start(signal: AbortSignal): Promise<Child>;
}

/** Servers, which stop last. */
const SERVERS: readonly string[] = ['MongoDB', 'Temporal'];

/**
 * Runs processes without restarts: results of a run in which one died mean nothing. `pids` includes
 * our own.
 */
export function createProcesses(config: StackConfig, signal: AbortSignal) {
  const children: Child[] = [];
  const pids: Record<string, number> = { 'benchmark itself': process.pid };
  let stopping = false;
  let fail: (failure: OperationalError) => void = () => {};
  const died = new Promise<never>((_resolve, reject) => {
    fail = reject;
  });
  died.catch(() => {});

  const startOne = async (part: Part): Promise<void> => {
    const child = await part.start(signal);
    children.push(child);
    pids[child.name] = child.pid;
    void child.exited.then((how) => {
      if (stopping) return;
      const log = lastLines(logPath(config, child.name));
      fail(new OperationalError(`${child.name} ${how}. The end of its log:\n${log}`));
    });
  };
  const stopAll = async (chosen: readonly Child[]): Promise<void> => {
    await Promise.all(chosen.map((child) => child.stop()));
  };
  return {
    died,
    pids,
    /** Starts all and waits for all, so that no late process is left running when one fails. */
    start: async (parts: readonly Part[]): Promise<void> => {
      for (const result of await Promise.allSettled(parts.map(startOne))) {
        if (result.status === 'rejected') throw result.reason;
      }
    },
    stop: async (): Promise<void> => {
      stopping = true;
      const isServer = ({ name }: Child) => SERVERS.includes(name);
      await stopAll(children.filter((child) => !isServer(child)));
      await stopAll(children.filter(isServer));
    },
  };
}

export function logPath(config: StackConfig, name: string): string {
  return join(config.dataDir, 'logs', `${name.toLowerCase()}.log`);
}
