import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { StackSettings } from '../src/stack-settings';

const pid = z.int().nullable();

/**
 * Content of `DATA_DIR/stack.json`, for the command line and scripts. A pid is null for an external
 * server, and while a part restarts.
 */
export const StackState = z.object({
  api: z.object({ pid, url: z.string() }),
  worker: z.object({ pid }),
  sandbox_bank: z.object({ pid }),
  sepa: z.object({ pid }).optional(),
  temporal: z.object({
    pid,
    address: z.string(),
    ui_url: z.string().nullable(),
    namespace: z.string(),
  }),
  mongodb: z.object({ pid, uri: z.string() }),
  metrics: z.object({
    ...{ api: z.string(), worker: z.string(), sandbox_bank: z.string() },
    sepa: z.string().optional(),
  }),
  settings: StackSettings.partial({ SEPA_IN_DIR: true, SEPA_IBAN: true }).extend({
    SANDBOX_CONNECTORS: z.string().default(''),
  }),
});

export type StackState = z.infer<typeof StackState>;
export type PartName = Exclude<keyof StackState, 'settings' | 'metrics'>;
export const PART_NAMES = [
  ...(['api', 'worker', 'sandbox_bank', 'sepa'] as const),
  ...(['temporal', 'mongodb'] as const),
] as const;

export function stateFile(dataDir: string): string {
  return join(dataDir, 'stack.json');
}

export function writeState(dataDir: string, state: StackState): void {
  replaceFile(stateFile(dataDir), `${JSON.stringify(state, null, 2)}\n`);
}

/** @returns undefined after a clean stop */
export function readState(dataDir: string): StackState | undefined {
  return readJson(stateFile(dataDir), StackState);
}

export function removeState(dataDir: string): void {
  rmSync(stateFile(dataDir), { force: true });
}

/** Replaces a file in one step, so that readers see no partial text. Only its owner may read it. */
export function replaceFile(path: string, text: string): void {
  const next = `${path}.${process.pid}.next`;
  writeFileSync(next, text, { mode: 0o600 });
  renameSync(next, path);
}

export function readJson<T>(path: string, schema: z.ZodType<T>): T | undefined {
  try {
    return schema.parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch {
    return undefined;
  }
}
