import { randomBytes } from 'node:crypto';
import { mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { getErrorCode, isMissingFile } from '../../src/base/errors';
import { syncDirectory, writeSynced } from '../../src/base/file-lock';

const MODE = 0o600;
/** Lines after which the file is written again. */
const LINES_MAX = 500;
/** A restore loses the newest first, so older ones prove nothing more. */
const SENT_MAX = 1_000;
/** Time after which a lock is that of a killed process; its holder gives up after half of it. */
const LOCK_MS = 20_000;
const LOCK_POLL_MS = 20;

const Seen = z.object({
  /** Null for a database that no process has given a name. */
  installation: z.string().nullable(),
  /** Epoch of MongoDB, ISO 8601; empty: none. */
  epoch: z.string(),
  /** Count in the connector's own database. */
  count: z.int(),
});
const Stopped = z.object({ id: z.string(), reason: z.string(), at: z.string() });
const Sent = z.tuple([z.string(), z.boolean()]);

const Note = z.discriminatedUnion('note', [
  Seen.extend({ note: z.literal('seen') }),
  z.object({ note: z.literal('leaving'), id: z.string(), installation: z.string().nullable() }),
  z.object({ note: z.literal('left'), id: z.string() }),
  Stopped.extend({ note: z.literal('stopped') }),
  Seen.extend({
    note: z.literal('released'),
    stop: z.string(),
    at: z.string(),
    acknowledged: z.array(z.string()),
  }),
  z.object({
    note: z.literal('all'),
    seen: Seen.nullable(),
    sent: z.array(Sent),
    acknowledged: z.array(z.string()),
    stop: Stopped.nullable(),
  }),
]);

export type StateNote = z.infer<typeof Note>;

/** State of MongoDB at the last comparison. */
export type Seen = z.infer<typeof Seen>;

/** Why a connector sends nothing. */
export type Stop = z.infer<typeof Stopped>;

export interface ConnectorState {
  seen: Seen | null;
  /** By ID, the newest last: whether it has left for certain. */
  sent: ReadonlyMap<string, boolean>;
  /** Sent, and unknown to the book when an operator released the connector. */
  acknowledged: readonly string[];
  stop: Stop | null;
  /** First complete line that is not one of ours; null: none. */
  damaged: number | null;
}

const EMPTY: ConnectorState = {
  seen: null,
  sent: new Map(),
  acknowledged: [],
  stop: null,
  damaged: null,
};

/** Content, and the version of the file that has it. */
interface Copy {
  state: ConnectorState;
  lines: number;
  /** Bytes of complete lines. */
  bytes: number;
  ino: number;
  /** Another file may get the number of one that was replaced. */
  birthtimeMs: number;
  size: number;
}

/**
 * Lines of JSON that survive a kill and a loss of power, also where several processes write them.
 * What is cut off at the end was never reported as written, and is ignored.
 */
export function openStateFile(path: string, { lockMs = LOCK_MS } = {}) {
  let copy: Copy | undefined;
  let queue: Promise<unknown> = Promise.resolve();
  const inOrder = <T>(work: () => Promise<T>): Promise<T> => {
    const result = queue.then(work);
    queue = result.catch(() => undefined);
    return result;
  };
  const refresh = async (): Promise<Copy | undefined> => {
    const there = await ignoreMissing(stat(path));
    if (there === undefined || !isSameFile(there, copy) || there.size !== copy?.size) {
      copy = await readCopy(path, copy);
    }
    return copy;
  };
  /** Replaces the file by one line, where that is needed also once no other process does it. */
  const rewriteIf = async (isNeeded: (current: Copy) => boolean): Promise<void> => {
    const before = await refresh();
    if (before === undefined || !isNeeded(before)) return;
    await withLock(path, lockMs, async (assertInTime) => {
      const current = await refresh();
      if (current !== undefined && isNeeded(current)) await rewrite(path, current, assertInTime);
    });
  };
  const write = async (notes: readonly StateNote[]): Promise<void> => {
    // A line after one that is cut off could not be read.
    await rewriteIf(({ bytes, size }) => bytes < size);
    const isNew = copy === undefined;
    await append(path, notes, lockMs);
    if (isNew) await syncDirectory(dirname(path));
    await rewriteIf(({ lines }) => lines > LINES_MAX);
  };
  return {
    path,
    /** @returns null without a file */
    read: (): Promise<ConnectorState | null> =>
      inOrder(async () => {
        const current = await refresh();
        return current === undefined || current.lines === 0 ? null : current.state;
      }),
    /** Resolves once the notes survive a loss of power. */
    write: (...notes: StateNote[]): Promise<void> => inOrder(() => write(notes)),
    /** Writes all that counts again, without lines that are damaged. */
    compact: (): Promise<void> => inOrder(() => rewriteIf(() => true)),
    makeDirectory: async (): Promise<void> => {
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    },
  };
}

/** Reads what was appended to a copy, or all of another file. */
async function readCopy(path: string, before: Copy | undefined): Promise<Copy | undefined> {
  const file = await ignoreMissing(open(path, 'r'));
  if (file === undefined) return undefined;
  try {
    const there = await file.stat();
    const { ino, birthtimeMs, size } = there;
    const isSame = isSameFile(there, before) && before.size <= size;
    const { state, lines, bytes } = isSame ? before : { state: EMPTY, lines: 0, bytes: 0 };
    const content = Buffer.alloc(size - bytes);
    const { bytesRead } = await file.read(content, 0, content.length, bytes);
    const complete = content.subarray(0, bytesRead).lastIndexOf('\n') + 1;
    const added = content.subarray(0, complete).toString('utf8').split('\n').slice(0, -1);
    return {
      state: added.reduce((sum, line, index) => applyLine(sum, line, lines + index), state),
      lines: lines + added.length,
      bytes: bytes + complete,
      ...{ ino, birthtimeMs, size: bytes + bytesRead },
    };
  } finally {
    await file.close();
  }
}

function isSameFile(
  { ino, birthtimeMs }: Pick<Copy, 'ino' | 'birthtimeMs'>,
  copy: Copy | undefined,
): copy is Copy {
  return copy?.ino === ino && copy.birthtimeMs === birthtimeMs;
}

function applyLine(state: ConnectorState, line: string, index: number): ConnectorState {
  try {
    return applyNote(state, Note.parse(JSON.parse(line)));
  } catch {
    return { ...state, damaged: state.damaged ?? index + 1 };
  }
}

function applyNote(state: ConnectorState, note: StateNote): ConnectorState {
  const { seen, sent, acknowledged } = state;
  switch (note.note) {
    case 'seen': {
      // Several processes may note what they have seen in another order.
      const installation = note.installation ?? seen?.installation ?? null;
      const epoch = seen !== null && seen.epoch > note.epoch ? seen.epoch : note.epoch;
      const count = Math.max(note.count, seen?.count ?? note.count);
      return { ...state, seen: { installation, epoch, count } };
    }
    case 'leaving':
      return sent.has(note.id) ? state : { ...state, sent: withSent(sent, note.id, false) };
    case 'left':
      return { ...state, sent: withSent(sent, note.id, true) };
    case 'stopped':
      return { ...state, stop: state.stop ?? omitNote(note) };
    case 'released': {
      const { installation, epoch, count, acknowledged: more } = note;
      const rest = new Map([...sent].filter(([id]) => !more.includes(id)));
      const all = [...new Set([...acknowledged, ...more])];
      const known = { sent: rest, acknowledged: all };
      return { ...state, ...known, seen: { installation, epoch, count }, stop: null };
    }
    default:
      return { ...state, ...omitNote(note), sent: new Map(note.sent) };
  }
}

function withSent(
  sent: ConnectorState['sent'],
  id: string,
  hasLeft: boolean,
): ConnectorState['sent'] {
  return new Map([...sent, [id, hasLeft]]);
}

function omitNote<N extends StateNote>({ note: _note, ...rest }: N): Omit<N, 'note'> {
  return rest;
}

function toLines(notes: readonly StateNote[]): Buffer {
  return Buffer.from(notes.map((note) => `${JSON.stringify(note)}\n`).join(''), 'utf8');
}

/** Appends in one write, which other processes cannot divide. */
async function append(path: string, notes: readonly StateNote[], lockMs: number): Promise<void> {
  const bytes = toLines(notes);
  for (;;) {
    const file = await open(path, 'a', MODE);
    try {
      const { bytesWritten } = await file.write(bytes);
      // As on a disk that is full: the next write removes what is cut off.
      if (bytesWritten < bytes.length) throw new Error('The state file could not be written.');
      await file.sync();
      // Who replaces the file may have read it before; who begins later reads what is written here.
      await untilUnlocked(path, lockMs);
      const { ino } = await file.stat();
      if ((await ignoreMissing(stat(path)))?.ino === ino) return;
    } finally {
      await file.close();
    }
  }
}

/** Replaces the file by one line. Call it with the lock, for which those wait who append. */
async function rewrite(path: string, { state }: Copy, assertInTime: () => void): Promise<void> {
  const { seen, sent, acknowledged, stop } = state;
  const all: StateNote = {
    ...{ note: 'all', seen, stop },
    sent: [...sent].slice(-SENT_MAX),
    acknowledged: acknowledged.slice(-SENT_MAX),
  };
  const part = `${path}.${randomBytes(8).toString('hex')}.part`;
  try {
    await writeSynced(part, toLines([all]), MODE);
    assertInTime();
    await rename(part, path);
    await syncDirectory(dirname(path));
  } finally {
    await rm(part, { force: true });
  }
}

/**
 * Works while no other process replaces the file.
 * @param work fails by `assertInTime` where others may soon take its lock for that of a killed process
 */
async function withLock(
  path: string,
  lockMs: number,
  work: (assertInTime: () => void) => Promise<void>,
): Promise<void> {
  while (!(await createLock(path))) await untilUnlocked(path, lockMs);
  const began = performance.now();
  const measure = () => performance.now() - began;
  try {
    await work(() => {
      if (measure() > lockMs / 2) throw new Error('It took too long to replace the state file.');
    });
  } finally {
    // Later it may be that of another process.
    if (measure() < lockMs) await rm(getLockPath(path), { force: true });
  }
}

async function createLock(path: string): Promise<boolean> {
  try {
    await (await open(getLockPath(path), 'wx', MODE)).close();
    return true;
  } catch (error) {
    if (getErrorCode(error) === 'EEXIST') return false;
    throw error;
  }
}

/** Waits until no process replaces the file, and removes the lock of one that was killed. */
async function untilUnlocked(path: string, lockMs: number): Promise<void> {
  let since = performance.now();
  let seen: number | undefined;
  for (;;) {
    const there = await ignoreMissing(stat(getLockPath(path)));
    if (there === undefined) return;
    // By its own clock, since that of a network file system may differ.
    if (there.mtimeMs !== seen) since = performance.now();
    seen = there.mtimeMs;
    if (performance.now() - since >= lockMs) await rm(getLockPath(path), { force: true });
    else await sleep(LOCK_POLL_MS);
  }
}

function getLockPath(path: string): string {
  return `${path}.lock`;
}

async function ignoreMissing<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (isMissingFile(error)) return undefined;
    throw error;
  }
}
