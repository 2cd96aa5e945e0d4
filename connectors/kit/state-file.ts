import { randomBytes } from 'node:crypto';
import { mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';
import { syncDirectory, writeSynced } from '../../src/base/durable-file';
import { isMissingFile } from '../../src/base/errors';

const MODE = 0o600;
/** Lines after which the file is written again. */
const LINES_MAX = 500;
/** A restore loses the newest first, so older ones prove nothing more. */
const SENT_MAX = 1_000;

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
  size: number;
}

/**
 * Lines of JSON that survive a kill and a loss of power, also where several processes write them.
 * What is cut off at the end was never reported as written, and is ignored.
 */
export function openStateFile(path: string) {
  let copy: Copy | undefined;
  let queue: Promise<unknown> = Promise.resolve();
  const inOrder = <T>(work: () => Promise<T>): Promise<T> => {
    const result = queue.then(work);
    queue = result.catch(() => undefined);
    return result;
  };
  const refresh = async (): Promise<Copy | undefined> => {
    const there = await ignoreMissing(stat(path));
    if (there === undefined || there.ino !== copy?.ino || there.size !== copy.size) {
      copy = await readCopy(path, copy);
    }
    return copy;
  };
  const write = async (notes: readonly StateNote[]): Promise<void> => {
    const before = await refresh();
    // A line after one that is cut off could not be read.
    if (before !== undefined && before.bytes < before.size) await rewrite(path, before);
    await append(path, notes);
    if (before === undefined) await syncDirectory(dirname(path));
    const after = await refresh();
    if (after !== undefined && after.lines > LINES_MAX) await rewrite(path, after);
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
    compact: (): Promise<void> =>
      inOrder(async () => {
        const current = await refresh();
        if (current !== undefined) await rewrite(path, current);
      }),
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
    const { ino, size } = await file.stat();
    const isSame = before?.ino === ino && before.size <= size;
    const { state, lines, bytes } = isSame ? before : { state: EMPTY, lines: 0, bytes: 0 };
    const content = Buffer.alloc(size - bytes);
    const { bytesRead } = await file.read(content, 0, content.length, bytes);
    const complete = content.subarray(0, bytesRead).lastIndexOf('\n') + 1;
    const added = content.subarray(0, complete).toString('utf8').split('\n').slice(0, -1);
    return {
      state: added.reduce((sum, line, index) => applyLine(sum, line, lines + index), state),
      lines: lines + added.length,
      bytes: bytes + complete,
      ...{ ino, size: bytes + bytesRead },
    };
  } finally {
    await file.close();
  }
}

function applyLine(state: ConnectorState, line: string, index: number): ConnectorState {
  const note = parseNote(line);
  if (note !== undefined) return applyNote(state, note);
  return { ...state, damaged: state.damaged ?? index + 1 };
}

function parseNote(line: string): StateNote | undefined {
  try {
    return Note.safeParse(JSON.parse(line)).data;
  } catch {
    return undefined;
  }
}

function applyNote(state: ConnectorState, note: StateNote): ConnectorState {
  const { seen, sent, acknowledged } = state;
  switch (note.note) {
    case 'seen':
      return { ...state, seen: findLater(seen, note) };
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

/** Several processes may note what they have seen in another order. */
function findLater(before: Seen | null, { installation, epoch, count }: Seen): Seen {
  if (before === null) return { installation, epoch, count };
  return {
    installation: installation ?? before.installation,
    epoch: epoch > before.epoch ? epoch : before.epoch,
    count: Math.max(count, before.count),
  };
}

function toLines(notes: readonly StateNote[]): Buffer {
  return Buffer.from(notes.map((note) => `${JSON.stringify(note)}\n`).join(''), 'utf8');
}

/** Appends in one write, which other processes cannot divide. */
async function append(path: string, notes: readonly StateNote[]): Promise<void> {
  const bytes = toLines(notes);
  for (;;) {
    const file = await open(path, 'a', MODE);
    try {
      await file.write(bytes);
      await file.sync();
      const { ino } = await file.stat();
      // Another process may have replaced the file meanwhile.
      if ((await ignoreMissing(stat(path)))?.ino === ino) return;
    } finally {
      await file.close();
    }
  }
}

/** Replaces the file by one line, and what another process has appended meanwhile. */
async function rewrite(path: string, { state, bytes }: Copy): Promise<void> {
  const { seen, sent, acknowledged, stop } = state;
  const all: StateNote = {
    ...{ note: 'all', seen, stop },
    sent: [...sent].slice(-SENT_MAX),
    acknowledged: acknowledged.slice(-SENT_MAX),
  };
  const part = `${path}.${randomBytes(8).toString('hex')}.part`;
  const old = await open(path, 'r');
  try {
    await writeSynced(part, toLines([all]), MODE);
    await rename(part, path);
    await syncDirectory(dirname(path));
    const appended = (await old.readFile()).subarray(bytes).toString('utf8').split('\n');
    const late = appended.map(parseNote).filter((note) => note !== undefined);
    if (late.length > 0) await append(path, late);
  } finally {
    await old.close();
    await rm(part, { force: true });
  }
}

async function ignoreMissing<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (isMissingFile(error)) return undefined;
    throw error;
  }
}
