import type { ChangeStream, Db } from 'mongodb';
import type { Logger } from '../log';
import { createMemory, type Memory, type Named } from './memory';

/** Collections whose documents change rarely and are read for nearly every request. */
const SETTINGS = ['accounts', 'webhook_endpoints'] as const;
type Setting = (typeof SETTINGS)[number];

/** Silence of the stream after which nothing is believed; the server speaks each second. */
const SILENCE_MS_MAX = 3_000;
const SPEAKS_EVERY_MS = 1_000;
const PAUSE_MS = 1_000;

/** Settings that this process remembers. */
export interface Settings {
  of<T extends Named>(collection: Setting): Memory<T>;
  /** Follows no more: each setting is read. */
  close: () => Promise<void>;
}

interface Following {
  db: Db;
  log: Pick<Logger, 'info' | 'warn'>;
  memories: Map<string, { forget: (id?: string) => void }>;
  /** Takes note that all changes made before `at` are known; undefined: that may not be so. */
  heard: (at: number | undefined) => void;
  opened: (stream: ChangeStream) => void;
  stopped: () => boolean;
}

/**
 * Remembers settings for as long as MongoDB tells of their changes: a change drops what it concerns
 * within milliseconds, and while the stream is away or silent each setting is read as it stands.
 * @see docs/operations.md#settings-that-processes-remember
 */
export function followSettings(db: Db, log: Following['log']): Settings {
  const memories: Following['memories'] = new Map();
  let stopped = false;
  let heardAt: number | undefined;
  const isCurrent = () => heardAt !== undefined && Date.now() - heardAt < SILENCE_MS_MAX;
  const heard = (at: number | undefined) => {
    heardAt = at;
  };
  let present: ChangeStream | undefined;
  const opened = (stream: ChangeStream) => {
    present = stream;
  };
  const following = follow({ db, log, memories, heard, opened, stopped: () => stopped });
  return {
    of: <T extends Named>(collection: Setting) => {
      const memory = createMemory<T>({ isCurrent, now: Date.now });
      memories.set(collection, memory);
      return memory;
    },
    close: async () => {
      stopped = true;
      await present?.close();
      await following;
    },
  };
}

async function follow(following: Following): Promise<void> {
  const { db, log, stopped, memories, heard } = following;
  let isTold = false;
  while (!stopped()) {
    const stream = openStream(db);
    following.opened(stream);
    const drop = () => {
      heard(undefined);
      for (const memory of memories.values()) memory.forget();
    };
    // A stream that is resumed, most likely on another server, closes its cursor first.
    stream.on('close', drop);
    try {
      await listen(stream, following, () => {
        if (isTold) log.info({}, 'settings are followed again');
        isTold = false;
      });
    } catch (err) {
      if (!isTold && !stopped()) log.warn({ err }, 'settings are not followed; each is read');
      isTold = true;
    }
    drop();
    await stream.close().catch(() => {});
    if (!stopped()) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

function openStream(db: Db): ChangeStream {
  const stages = [
    { $match: { 'ns.coll': { $in: [...SETTINGS] } } },
    { $project: { ns: 1, documentKey: 1 } },
  ];
  return db.watch(stages, { maxAwaitTimeMS: SPEAKS_EVERY_MS });
}

/** Forgets what changes, until it is stopped. @throws any error of the stream */
async function listen(
  stream: ChangeStream,
  { memories, heard, stopped }: Following,
  opened: () => void,
): Promise<void> {
  // The stream stands open once this has answered: a later change can't be missed.
  for (let isOpen = false; !stopped(); ) {
    const asked = Date.now();
    const change = await stream.tryNext();
    if (!isOpen) opened();
    isOpen = true;
    // Nothing new: all that was written before the question is known.
    if (change === null) heard(asked);
    else forget(memories, change);
  }
}

function forget(memories: Following['memories'], change: object): void {
  const { ns, documentKey } = Object(change);
  const memory = memories.get(String(ns?.coll));
  // A change without a document concerns them all.
  memory?.forget(documentKey?._id === undefined ? undefined : String(documentKey._id));
}
