import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { ensureSchedule, SCHEDULE_NAMES } from '../src/temporal/schedules';

const PAUSE_MS = 10_000;

interface ScheduleDeps {
  temporal: Client;
  lifecycleQueue: string;
  log: Record<'info' | 'warn', (fields: object, line: string) => void>;
}

/**
 * Ensures each schedule, and tries those that failed again until none is left.
 * @returns function that ends it, and waits for the call in progress
 */
export function startScheduling(
  { temporal, lifecycleQueue, log }: ScheduleDeps,
  pauseMs = PAUSE_MS,
): () => Promise<void> {
  const left = new Set(SCHEDULE_NAMES);
  const warned = new Set<string>();
  const stop = new AbortController();
  const { signal } = stop;
  const ensureAll = async (): Promise<void> => {
    while (!signal.aborted) {
      for (const name of left) {
        if (signal.aborted) return;
        try {
          const status = await ensureSchedule(temporal, name, lifecycleQueue);
          log.info({ status }, `${name} scheduled`);
          left.delete(name);
        } catch (err) {
          // Once each: a Temporal that denies access to schedules would fill the log.
          if (!warned.has(name)) log.warn({ err }, `${name} not scheduled`);
          warned.add(name);
        }
      }
      if (left.size === 0) return;
      await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
    }
  };
  const running = ensureAll();
  return async () => {
    stop.abort();
    await running;
  };
}
