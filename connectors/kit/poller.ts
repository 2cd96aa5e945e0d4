import type { Db } from 'mongodb';
import { isDuplicateKey } from '../../src/base/mongo';
import type { Poll, Settings, Tools } from './definition';
import type { KitMeter } from './metrics';
import type { DeliverReports } from './reports';

interface Cursor {
  _id: 'poll';
  value: string | null;
}

interface PollerDeps<S extends Settings> {
  db: Db;
  poll: Poll<S>;
  tools: Tools<S>;
  deliver: DeliverReports;
  meter: Pick<KitMeter, 'polled'>;
}

/**
 * Reads reports from a stored cursor, which advances once they are delivered. Several processes may
 * poll: the cursor only advances from where a process has read.
 * @returns function that reads once, and returns whether more may be there
 */
export function createPoller<S extends Settings>({
  db,
  poll,
  tools,
  deliver,
  meter,
}: PollerDeps<S>): () => Promise<boolean> {
  const cursors = db.collection<Cursor>('cursors');
  const advance = async (from: string | null, value: string | null): Promise<void> => {
    try {
      await cursors.updateOne({ _id: 'poll', value: from }, { $set: { value } }, { upsert: true });
    } catch (error) {
      // Another process has advanced it: the next round reads from there.
      if (!isDuplicateKey(error)) throw error;
    }
  };
  const end = async (from: string | null, cursor: string | null): Promise<void> => {
    if (cursor === from) return;
    if (poll.acknowledge === undefined) await advance(from, cursor);
    else if (cursor !== null) await poll.acknowledge(cursor, tools);
  };
  const readCursor = async (): Promise<string | null> =>
    (await cursors.findOne({ _id: 'poll' }))?.value ?? null;
  return async () => {
    const from = poll.acknowledge === undefined ? await readCursor() : null;
    const { reports, cursor, more = false } = await poll.read(from, tools);
    await deliver(reports);
    await end(from, cursor);
    if (!more) meter.polled();
    return more;
  };
}
