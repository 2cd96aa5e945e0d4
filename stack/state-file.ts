import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

const pid = z.int().nullable();

/**
 * Content of `DATA_DIR/stack.json`, which tells the command line and scripts what runs. A pid is
 * null where the server was given by address, and while a part is being started again.
 */
export const StackState = z.object({
  api: z.object({ pid, url: z.string() }),
  worker: z.object({ pid }),
  sandbox_bank: z.object({ pid }),
  temporal: z.object({
    pid,
    address: z.string(),
    /** Null where the server was given by address. */
    ui_url: z.string().nullable(),
    namespace: z.string(),
  }),
  mongodb: z.object({ pid, uri: z.string() }),
  /** Addresses of the Prometheus pages; absent in a file of an earlier version. */
  metrics: z.object({ api: z.string(), worker: z.string(), sandbox_bank: z.string() }).optional(),
  /** Other settings that the command line needs to act on the same stack. */
  settings: z.object({
    MONGODB_DB: z.string(),
    /** Absent in a file of an earlier version. */
    TASK_QUEUE_PREFIX: z.string().default(''),
    /** Absolute paths. */
    KEYS_FILE: z.string(),
    KEYS_DIR: z.string(),
    WEBHOOK_ALLOW_PRIVATE: z.string(),
    PUBLIC_URL: z.string(),
    /** Absent in a file of an earlier version. */
    LIVE_CONNECTORS: z.string().default(''),
  }),
});

export type StackState = z.infer<typeof StackState>;
export type PartName = Exclude<keyof StackState, 'settings' | 'metrics'>;
export const PART_NAMES = ['api', 'worker', 'sandbox_bank', 'temporal', 'mongodb'] as const;

export function stateFile(dataDir: string): string {
  return join(dataDir, 'stack.json');
}

/** Replaces the file in one step, so that a reader sees the old state or the new one whole. */
export function writeState(dataDir: string, state: StackState): void {
  replaceFile(stateFile(dataDir), `${JSON.stringify(state, null, 2)}\n`);
}

/** Reads the state that the last launcher left behind; undefined when it stopped cleanly. */
export function readState(dataDir: string): StackState | undefined {
  try {
    return StackState.safeParse(JSON.parse(readFileSync(stateFile(dataDir), 'utf8'))).data;
  } catch {
    return undefined;
  }
}

export function removeState(dataDir: string): void {
  rmSync(stateFile(dataDir), { force: true });
}

/** Writes a file under another name and renames it in; readable by its owner only. */
export function replaceFile(path: string, text: string): void {
  const next = `${path}.${process.pid}.next`;
  writeFileSync(next, text, { mode: 0o600 });
  renameSync(next, path);
}
