import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { describeError, OperationalError } from '../src/base/errors';
import { tryLock } from '../src/base/file-lock';
import { isAlive, listProcessIds, readCommandLine, terminate } from '../src/base/process-table';
import { PROGRAM } from '../src/base/program';
import { describeOtherFormat, FORMAT } from '../src/domain/format';
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

/**
 * @returns function that unlocks
 * @throws OperationalError if another launcher uses the data
 */
export function lockDataDir(dataDir: string): () => void {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new OperationalError(`DATA_DIR ${dataDir} can't be made: ${describeError(error)}`);
  }
  const lock = tryLock(join(dataDir, 'launcher.lock'));
  if (lock.holder === undefined) return () => lock.release();
  const { pid } = lock.holder;
  const { api, temporal } = readState(dataDir) ?? {};
  const addresses = [api?.url, temporal?.ui_url].filter((url) => url != null);
  const where = addresses.length === 0 ? '' : ` It serves ${addresses.join(' and ')}.`;
  throw new OperationalError(
    `Another ${PROGRAM.start} (pid ${pid}) runs on DATA_DIR ${dataDir}.${where} Stop it first, with ` +
      `Ctrl-C or \`kill ${pid}\`, or set DATA_DIR, PORT and TEMPORAL_UI_PORT for a second stack.`,
  );
}

const DATA = ['ports.json', 'mongodb', 'temporal'];
const TEXT = /^format (\d+)$/;

/**
 * Marks an unused data directory before any other write.
 * @throws OperationalError if its data has another format
 */
export function markDataDir(dataDir: string): void {
  const path = join(dataDir, 'version');
  const isMarked = existsSync(path);
  if (!isMarked && !DATA.some((name) => existsSync(join(dataDir, name)))) {
    replaceFile(path, `format ${FORMAT}\n`);
    return;
  }
  const digits = isMarked ? TEXT.exec(readFileSync(path, 'utf8').trim())?.[1] : undefined;
  const found = digits === undefined ? undefined : Number(digits);
  if (found === FORMAT) return;
  const remedy = 'Set DATA_DIR to another directory, or move this one away.';
  throw new OperationalError(describeOtherFormat(`DATA_DIR ${dataDir}`, found, remedy));
}

const GRACE_MS = 8_000;

/** Part of the command line of each, by which its process is known. */
const COMMAND_TEXTS: Record<PartName, (dataDir: string) => string> = {
  mongodb: (dataDir) => `--dbpath ${join(dataDir, 'mongodb')} `,
  temporal: (dataDir) => `--db-filename ${join(dataDir, 'temporal', 'temporal.db')} `,
  api: () => 'src/main.js',
  worker: () => 'worker/main.js',
  sandbox_bank: () => 'sandbox/main.js',
  sepa: () => 'sepa/main.js',
};

/**
 * Ends what a killed launcher has left running. The command line must fit, since the id may belong
 * to another program by now. The caller holds the directory's lock.
 * @returns the names of the ended parts
 */
export async function endLeftovers(dataDir: string): Promise<PartName[]> {
  const state = readState(dataDir);
  const endedParts: PartName[] = [];
  for (const part of PART_NAMES) {
    const storedPid = state?.[part]?.pid ?? null;
    const isServer = part === 'mongodb' || part === 'temporal';
    const candidates = isServer ? listProcessIds() : storedPid === null ? [] : [storedPid];
    for (const pid of candidates) {
      if (!isAlive(pid) || !readCommandLine(pid).includes(COMMAND_TEXTS[part](dataDir))) continue;
      await terminate(pid, GRACE_MS);
      endedParts.push(part);
    }
  }
  removeState(dataDir);
  return endedParts;
}
