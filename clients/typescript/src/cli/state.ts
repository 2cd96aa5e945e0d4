import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { PaymentsError } from '../errors';
import type { EventDelivery } from '../resources/events';

/** What `listen` remembers. It is written before and after each event is forwarded. */
export interface Progress {
  /** The last event in the order of the API; undefined before the first. */
  cursor?: string;
  /** Whether it is known which events were there before the first start. */
  hasBegun: boolean;
  /** Latest events that need no forwarding; the API may list some again after the first cursor. */
  recent: string[];
  /** Event that is on its route: after a crash, nobody knows whether it arrived. */
  sending?: string;
  /** Events that were answered with an error. */
  refused: { id: string; attempts: number; at: number }[];
  /** Deliveries of the newest events to endpoints, to see when one is sent again. */
  deliveries: Record<string, EventDelivery[]>;
}

export type State = ReturnType<typeof openState>;

const RECENT_MAX = 1_000;
const NOTHING: Progress = { hasBegun: false, recent: [], refused: [], deliveries: {} };

interface StateRequest {
  file?: string | undefined;
  /** What distinguishes this `listen` from others. */
  names: string[];
}

/** Opens the file that outlives restarts. @throws PaymentsError while another process uses it */
export function openState({ file, names }: StateRequest) {
  const path = file ?? chooseFile(names);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const unlock = lock(`${path}.lock`);
  const stored = readProgress(path);
  let progress = stored ?? NOTHING;
  const write = (changes: Partial<Progress>) => {
    progress = { ...progress, ...changes };
    const recent = progress.recent.slice(-RECENT_MAX);
    writeFileSync(`${path}.new`, JSON.stringify({ ...progress, recent }), { mode: 0o600 });
    renameSync(`${path}.new`, path);
  };
  return {
    isNew: stored === undefined,
    read: () => progress,
    write,
    clear: () => write({ ...NOTHING, cursor: undefined, sending: undefined }),
    close: unlock,
  };
}

function chooseFile(names: string[]): string {
  const folder = process.env['XDG_STATE_HOME'] || join(homedir(), '.local/state');
  const hash = createHash('sha256').update(names.join('\0')).digest('hex').slice(0, 16);
  return join(folder, 'durable-payments', `listen-${hash}.json`);
}

function readProgress(path: string): Progress | undefined {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
  try {
    return { ...NOTHING, ...JSON.parse(text) };
  } catch {
    throw new PaymentsError(`${path} is damaged. Delete it to begin with the events from now on.`);
  }
}

/** Two processes would forward every event twice. */
function lock(path: string): () => void {
  const holder = readHolder(path);
  if (holder !== undefined && holder !== process.pid && isRunning(holder)) {
    throw new PaymentsError(
      `Process ${holder} forwards these events already. If it does not, delete ${path}.`,
    );
  }
  writeFileSync(path, String(process.pid));
  return () => rmSync(path, { force: true });
}

function readHolder(path: string): number | undefined {
  try {
    return Number(readFileSync(path, 'utf8')) || undefined;
  } catch {
    return undefined;
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}
