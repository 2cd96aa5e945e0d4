import { join } from 'node:path';
import { StackFailure } from '../src/os/failure';
import type { Child } from '../stack/child-process';
import type { StackConfig } from '../stack/config';
import { lastLines } from '../stack/log-file';

/** Part of the stack that can be started. */
export interface Part {
  name: string;
  start(signal: AbortSignal): Promise<Child>;
}

interface Running {
  part: Part;
  child: Child;
}

/** Servers, which serve all others and end last. */
const SERVERS: readonly string[] = ['MongoDB', 'Temporal'];

/**
 * Runs processes, whose ids and our own are in `pids`, and starts none again by itself, since figures of a run in which one died mean
 * nothing.
 */
export function createProcesses(config: StackConfig, signal: AbortSignal) {
  const running: Running[] = [];
  const pids: Record<string, number> = { 'benchmark itself': process.pid };
  let stopping = false;
  let giveUp: (failure: StackFailure) => void = () => {};
  const died = new Promise<never>((_resolve, reject) => {
    giveUp = reject;
  });
  died.catch(() => {});

  const watch = (entry: Running): void => {
    const { name, exited } = entry.child;
    void exited.then((how) => {
      if (stopping || !running.includes(entry)) return;
      const log = lastLines(logOf(config, name));
      giveUp(new StackFailure(`${name} ${how}. The end of its log:\n${log}`));
    });
  };
  const startOne = async (part: Part): Promise<void> => {
    const child = await part.start(signal);
    // A restart may meet the end of the run.
    if (stopping) return await child.stop();
    const entry = { part, child };
    running.push(entry);
    pids[child.name] = child.pid;
    watch(entry);
  };
  const start = (parts: readonly Part[]) => allOf(parts.map(startOne));
  const stopAll = async (entries: readonly Running[]): Promise<void> => {
    await Promise.all(entries.map(({ child }) => child.stop()));
  };
  return {
    died,
    pids,
    start,
    /** Ends those parts and starts them anew. */
    restart: async (which: (part: Part) => boolean): Promise<void> => {
      const chosen = running.filter(({ part }) => which(part));
      for (const entry of chosen) running.splice(running.indexOf(entry), 1);
      await stopAll(chosen);
      await start(chosen.map(({ part }) => part));
    },
    stop: async (): Promise<void> => {
      stopping = true;
      const isServer = ({ child }: Running) => SERVERS.includes(child.name);
      await stopAll(running.filter((entry) => !isServer(entry)));
      await stopAll(running.filter(isServer));
    },
  };
}

export function logOf(config: StackConfig, name: string): string {
  return join(config.dataDir, 'logs', `${name.toLowerCase()}.log`);
}

/**
 * Waits for all, also when one fails, since a process that comes up late must not be left running.
 */
async function allOf(starts: readonly Promise<void>[]): Promise<void> {
  for (const result of await Promise.allSettled(starts)) {
    if (result.status === 'rejected') throw result.reason;
  }
}
