import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Collection, Db } from 'mongodb';
import { Gauge } from 'prom-client';
import { describeMetric } from '../../src/base/metrics';
import type { Env } from '../../src/domain/environment';
import type { ConnectorProcess } from './process';
import { type ConnectorState, openStateFile, type Seen, type Stop } from './state-file';

export type { Stop } from './state-file';

/** Time since the count was raised, after which the next instruction raises it. */
const RAISE_MS = 1_000;
const UNKNOWN_MAX = 5;
const OLDER_COUNT = 'The connector’s database is older than its state file';

/** Nothing is sent or answered until an operator releases the connector. */
class ConnectorStopped extends Error {
  override readonly name = 'ConnectorStopped';

  constructor({ reason }: Pick<Stop, 'reason'>) {
    super(`${reason}: not instructed.`);
  }
}

/** Reads what a connector's own database knows to have left. */
export interface SentBook {
  /** Whether anything may have left for the bank. */
  hasSent: () => Promise<boolean>;
  /**
   * Lists what the book does not know as sent. `hasLeft`: the book has noted it as sent, before the
   * state file did; otherwise it may have been about to leave.
   */
  listUnknown?: (sent: readonly { id: string; hasLeft: boolean }[]) => Promise<string[]>;
}

interface GuardPlace {
  environment: Env;
  /** `CONNECTOR_STATE_DIR`. */
  dir: string;
  /** The connector's own database. */
  db: Db;
  book: SentBook;
}

type GuardDeps = Pick<ConnectorProcess, 'connector' | 'stores' | 'registry' | 'now' | 'log'>;

/** Changes with the database, and is restored with it. */
interface SendCount {
  _id: 'sends';
  count: number;
}

export type RestoreGuard = Awaited<ReturnType<typeof openRestoreGuard>>;

/**
 * Opens the state file of a connector in one environment, which no restore of MongoDB or Temporal
 * puts back, and compares it with MongoDB. It has MongoDB's epoch, a count in the connector's own
 * database, and the IDs of what was sent. The count is the connector's own, since a worker may raise
 * the epoch of a restored database before the connector reads it.
 * @throws Error if the directory cannot be written, or MongoDB does not answer
 * @see docs/connectors.md#after-a-restore
 */
export async function openRestoreGuard(
  { connector, stores, registry, now, log }: GuardDeps,
  { environment, dir, db, book }: GuardPlace,
) {
  const file = openStateFile(join(dir, `${connector}.${environment}.jsonl`));
  const counts: Collection<SendCount> = db.collection<SendCount>('send_counts');
  const gauge = new Gauge({
    ...describeMetric('payments_connector_stopped'),
    registers: [registry],
  });
  const listeners: (() => void)[] = [];
  let loggedId: string | undefined;
  let raisedAt = Number.NEGATIVE_INFINITY;

  const show = (stop: Stop | null): Stop | null => {
    gauge.set({ connector }, stop === null ? 0 : 1);
    if (stop?.id !== loggedId) {
      loggedId = stop?.id;
      const command = `connector release ${connector} --env ${environment} --after-restore`;
      if (stop === null) log.info({ connector }, 'the connector was released, and sends again');
      else log.error({ connector, code: 'connector_stopped' }, `${stop.reason}: see ${command}`);
      for (const listener of listeners) listener();
    }
    return stop;
  };
  const stopFor = async (reason: string): Promise<Stop> => {
    const stop = { id: randomUUID(), reason, at: now().toISOString() };
    await file.write({ note: 'stopped', ...stop });
    // Another process may have stopped first.
    return (await file.read())?.stop ?? stop;
  };
  const readMongo = async (): Promise<Seen> => {
    const [epoch, sends] = await Promise.all([
      stores.epoch.read(),
      counts.findOne({ _id: 'sends' }, { readConcern: { level: 'majority' } }),
    ]);
    const { installation = null, at = '' } = epoch ?? {};
    return { installation, epoch: at, count: sends?.count ?? 0 };
  };
  const findUnknown = async ({ sent }: ConnectorState): Promise<string[]> => {
    if (book.listUnknown === undefined) return [];
    const all = [...sent].map(([id, hasLeft]) => ({ id, hasLeft }));
    // A restore loses the newest first: only a finding is worth a read of all.
    const newest = await book.listUnknown(all.slice(-1));
    return newest.length === 0 ? [] : await book.listUnknown(all);
  };
  /** @throws Error while MongoDB has no epoch, as during a restore */
  const findReason = async (
    state: ConnectorState | null,
    found: Seen,
  ): Promise<string | undefined> => {
    if (state === null) {
      const isFirst = !(await book.hasSent());
      return isFirst ? undefined : 'The connector has sent before, and its state file is missing';
    }
    if (state.damaged !== null) return `Line ${state.damaged} of the state file is damaged`;
    const { installation = null, epoch = '', count = 0 } = state.seen ?? {};
    if (found.installation === null && installation !== null) {
      throw new Error('MongoDB has no epoch, as during a restore: not instructed.');
    }
    if (installation !== null && found.installation !== installation) {
      return `MongoDB is the installation ${found.installation}, and the state file that of ${installation}`;
    }
    // Named before a time, since an operator asks the bank about them.
    const unknown = await findUnknown(state);
    if (unknown.length > 0) {
      const shown = unknown.slice(-UNKNOWN_MAX).join(', ');
      const more = unknown.length > UNKNOWN_MAX ? ` and ${unknown.length - UNKNOWN_MAX} more` : '';
      return `The connector has sent what its database does not know, ${shown}${more}`;
    }
    if (found.epoch < epoch) {
      return `MongoDB has the state of ${found.epoch}, and the connector has seen that of ${epoch}`;
    }
    return found.count < count ? OLDER_COUNT : undefined;
  };
  /** Starts from the book as it is; what it does not know stays acknowledged. */
  const release = async (state: ConnectorState, stop: Stop): Promise<Stop | null> => {
    const found = await readMongo();
    const all = [...state.sent].map(([id, hasLeft]) => ({ id, hasLeft }));
    const acknowledged = (await book.listUnknown?.(all)) ?? [];
    const at = now().toISOString();
    await file.write({ note: 'released', stop: stop.id, at, ...found, acknowledged });
    await file.compact();
    return (await file.read())?.stop ?? null;
  };
  const compare = async (): Promise<Stop | null> => {
    // Read before MongoDB, whose state is never older than what another process has noted of it.
    const state = await file.read();
    if (state?.stop) {
      const released = await stores.connectorReleases.get(state.stop.id);
      return released === null ? state.stop : await release(state, state.stop);
    }
    const found = await readMongo();
    const reason = await findReason(state, found);
    if (reason !== undefined) return await stopFor(reason);
    const { seen = null } = state ?? {};
    if (seen === null || found.epoch > seen.epoch) await file.write({ note: 'seen', ...found });
    return null;
  };
  const raise = async (): Promise<Stop | null> => {
    const seen = (await file.read())?.seen ?? null;
    const raised = await counts.findOneAndUpdate(
      { _id: 'sends' },
      { $inc: { count: 1 } },
      { upsert: true, returnDocument: 'after' },
    );
    const count = raised?.count ?? 0;
    if (seen === null || count <= seen.count) return await stopFor(OLDER_COUNT);
    // In MongoDB first, so that the file is never ahead of one that was not restored.
    await file.write({ note: 'seen', ...seen, count });
    raisedAt = performance.now();
    return null;
  };
  const check = joinNext(async () => show(await compare()));
  const checkToSend = joinNext(async () => {
    const stop = await compare();
    const isDue = stop === null && performance.now() - raisedAt >= RAISE_MS;
    return show(isDue ? await raise() : stop);
  });
  /**
   * Compares before an instruction: two small reads by ID, which those that wait share, so that no
   * restore comes between the comparison and what is sent.
   * @throws ConnectorStopped, or Error if MongoDB does not answer or the file cannot be written
   */
  const confirm = async (): Promise<void> => {
    const stop = await checkToSend();
    if (stop !== null) throw new ConnectorStopped(stop);
  };
  const guard = {
    confirm,
    /** Compares on a loop. @returns why the connector is stopped; null: it is not */
    check,
    /** Notifies of a stop and of its release. */
    onChange: (listener: () => void): void => {
      listeners.push(listener);
    },
    /** Notes an ID before it leaves: once this resolves, it survives a loss of power. */
    leaving: async (id: string): Promise<void> => {
      const installation = (await file.read())?.seen?.installation ?? null;
      await file.write({ note: 'leaving', id, installation });
    },
    /** Notes that it has left; call it once the book knows that. */
    left: (id: string): Promise<void> => file.write({ note: 'left', id }),
    /** Whether the file has it as sent, whatever the book says. */
    hasLeft: async (id: string): Promise<boolean> => {
      const current = await file.read();
      return current?.sent.get(id) === true || current?.acknowledged.includes(id) === true;
    },
    /** Whether the file has it as sent, or as about to leave. */
    mayHaveLeft: async (id: string): Promise<boolean> => {
      const current = await file.read();
      return current?.sent.has(id) === true || current?.acknowledged.includes(id) === true;
    },
    /** Confirms before each of these activities, since a look-up must not answer either. */
    protect: <A extends object>(activities: A): A =>
      Object.fromEntries(
        Object.entries(activities).map(([name, activity]) => [
          name,
          async (...args: unknown[]) => {
            await confirm();
            return await activity(...args);
          },
        ]),
      ) as A,
  };
  await file.makeDirectory();
  await check();
  return guard;
}

/** Joins calls into the next run, which begins after all of them. */
function joinNext<T>(run: () => Promise<T>): () => Promise<T> {
  let current: Promise<unknown> = Promise.resolve();
  let next: Promise<T> | undefined;
  return () => {
    next ??= current.then(() => {
      next = undefined;
      const result = run();
      current = result.catch(() => undefined);
      return result;
    });
    return next;
  };
}
