import type { ClientSession, Db } from 'mongodb';
import { createCachedRead } from './cache';

/** New payments and payouts go to a paused connector no longer. */
export interface ConnectorPauseDocument {
  /** Name of the connector. */
  _id: string;
  livemode: boolean;
  /** ISO 8601, ms. */
  paused_at: string;
  operator: string | null;
  reason: string | null;
}

export type ConnectorPauses = ReadonlyMap<string, ConnectorPauseDocument>;

/** @param cacheMs age up to which they are cached; 0: never */
export function createConnectorPauseStore(db: Db, cacheMs: number) {
  const pauses = db.collection<ConnectorPauseDocument>('connector_pauses');
  const read = async (): Promise<ConnectorPauses> => {
    const all = await pauses.find().sort({ _id: 1 }).toArray();
    return new Map(all.map((pause) => [pause._id, pause]));
  };
  return {
    read,
    readCached: createCachedRead(cacheMs, read),
    get: (connector: string, session?: ClientSession) =>
      pauses.findOne({ _id: connector }, { session }),
    insert: (pause: ConnectorPauseDocument, session: ClientSession) =>
      pauses.insertOne(pause, { session }),
    /** @returns the removed pause; null without one */
    remove: (connector: string, session: ClientSession) =>
      pauses.findOneAndDelete({ _id: connector }, { session }),
  };
}
