import type { Db } from 'mongodb';
import { createGate } from '../../src/base/gate';
import { isDuplicateKey } from '../../src/base/mongo';
import type { Malformed, Poll, Settings, Tools } from './definition';
import type { KitMeter } from './metrics';
import { type DeliverReports, groupByResource } from './reports';

const AT_ONCE = 10;

interface Cursor {
  _id: 'poll';
  value: string | null;
}

interface PollerDeps<S extends Settings> {
  db: Db;
  poll: Poll<S>;
  tools: Tools<S>;
  deliver: DeliverReports;
  setAside: (malformed: Malformed) => Promise<void>;
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
  setAside,
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
  const { acknowledge } = poll;
  if (acknowledge !== undefined) {
    const gate = createGate(AT_ONCE);
    return async () => {
      const { reports, malformed = [], more = false } = await poll.read(null, tools);
      for (const each of malformed) await setAside(each);
      const groups = groupByResource(reports);
      const results = await Promise.allSettled(groups.map((group) => gate(() => deliver(group))));
      const delivered = groups.filter((_group, at) => results[at]?.status === 'fulfilled').flat();
      if (delivered.length > 0) await acknowledge(delivered, tools);
      for (const result of results) if (result.status === 'rejected') throw result.reason;
      if (!more) meter.polled();
      return more;
    };
  }
  return async () => {
    const from = (await cursors.findOne({ _id: 'poll' }))?.value ?? null;
    const { reports, malformed = [], cursor, more = false } = await poll.read(from, tools);
    await deliver(reports);
    for (const each of malformed) await setAside(each);
    if (cursor !== from) await advance(from, cursor);
    if (!more) meter.polled();
    return more;
  };
}
