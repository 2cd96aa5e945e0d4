import { setTimeout as sleep } from 'node:timers/promises';
import { describeError } from '../src/base/errors';
import type { Child } from './child-process';

export interface Part<Name extends string = string> {
  name: Name;
  /** Resolves once others may depend on it. On `signal` it ends soon, with nothing left running. */
  start(signal: AbortSignal): Promise<Child>;
}

export interface PartChange<Name extends string = string> {
  part: Name;
  pid: number | null;
  what: 'up' | 'down' | 'restarting' | 'failed to start';
  reason?: string;
  retryInMs?: number;
}

export type Supervisor = ReturnType<typeof supervise>;

/** `steadyMs`: uptime after which the shortest wait applies again. */
const DEFAULTS = { backoffMsMin: 200, backoffMsMax: 5_000, steadyMs: 30_000 };

/** `onChange` receives every start and death, except those of `stop`. */
export function supervise<Name extends string>(
  stages: readonly (readonly Part<Name>[])[],
  onChange: (change: PartChange<Name>) => void,
  options = DEFAULTS,
) {
  const running = new Map<Part<Name>, Child>();
  const keepTasks = new Map<Part<Name>, Promise<void>>();
  const stopping = new AbortController();
  const restarting = new Set<Part<Name>>();
  const waits = new Map<Part<Name>, AbortController>();

  const run = async (part: Part<Name>): Promise<Child> => {
    const child = await part.start(stopping.signal);
    running.set(part, child);
    onChange({ part: part.name, pid: child.pid, what: 'up' });
    return child;
  };

  const pause = async (part: Part<Name>, ms: number): Promise<void> => {
    const abort = new AbortController();
    waits.set(part, abort);
    const signal = AbortSignal.any([stopping.signal, abort.signal]);
    await sleep(ms, undefined, { signal }).catch(() => {});
    waits.delete(part);
  };

  const keepRunning = async (part: Part<Name>, first: Child): Promise<void> => {
    let child: Child | undefined = first;
    let waitMs = options.backoffMsMin;
    while (!stopping.signal.aborted) {
      if (child !== undefined) {
        const since = Date.now();
        const reason = await child.exited;
        running.delete(part);
        if (stopping.signal.aborted) return;
        if (Date.now() - since >= options.steadyMs) waitMs = options.backoffMsMin;
        if (restarting.has(part)) onChange({ part: part.name, pid: null, what: 'restarting' });
        else onChange({ part: part.name, pid: null, what: 'down', reason, retryInMs: waitMs });
      }
      if (!restarting.delete(part)) {
        await pause(part, waitMs);
        waitMs = Math.min(waitMs * 2, options.backoffMsMax);
      }
      if (stopping.signal.aborted) return;
      child = await run(part).catch((error) => {
        const reason = describeError(error);
        const change = { part: part.name, pid: null, reason, retryInMs: waitMs } as const;
        if (!stopping.signal.aborted) onChange({ ...change, what: 'failed to start' });
        return undefined;
      });
    }
  };

  const startStage = async (stage: readonly Part<Name>[]): Promise<void> => {
    const results = await Promise.allSettled(
      stage.map(async (part) => {
        const child = await run(part);
        keepTasks.set(part, keepRunning(part, child));
      }),
    );
    for (const result of results) if (result.status === 'rejected') throw result.reason;
  };

  const stopStage = async (stage: readonly Part<Name>[]): Promise<void> => {
    await Promise.all(
      stage.map(async (part) => {
        await running.get(part)?.stop();
        // A restart in progress when the stop began starts one more child.
        await keepTasks.get(part);
        await running.get(part)?.stop();
        running.delete(part);
      }),
    );
  };

  const endAll = async (): Promise<void> => {
    stopping.abort();
    for (const stage of [...stages].reverse()) await stopStage(stage);
  };

  const startAll = async (): Promise<void> => {
    try {
      for (const stage of stages) {
        stopping.signal.throwIfAborted();
        await startStage(stage);
      }
    } catch (error) {
      await endAll();
      throw error;
    }
  };

  let starting: Promise<void> = Promise.resolve();
  let stopped: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    stopping.abort();
    // What a part had begun to start is not known before.
    await starting;
    await endAll();
  };

  return {
    /** @throws the error of a part's first start, or of a stop, after ending those that had come up */
    start: (): Promise<void> => {
      const started = startAll();
      starting = started.catch(() => {});
      return started;
    },
    restart: async (name: string): Promise<void> => {
      for (const part of stages.flat().filter((each) => each.name === name)) {
        const child = running.get(part);
        if (child !== undefined) restarting.add(part);
        await child?.stop();
        waits.get(part)?.abort();
      }
    },
    /** Ends a start in progress, too. */
    stop: (): Promise<void> => {
      stopped ??= stop();
      return stopped;
    },
    hurry: (): void => {
      for (const child of running.values()) child.kill();
    },
  };
}
