import type { ClientSession, Db } from 'mongodb';
import { toEnv } from '../domain/environment';
import { createCachedRead } from './cache';

interface PauseScope {
  connector: string;
  livemode: boolean;
}

/** Nothing new goes to a paused connector. */
export interface ConnectorPauseDocument extends PauseScope {
  _id: string;
  /** ISO 8601, ms. */
  paused_at: string;
  operator: string | null;
  reason: string | null;
}

/** Keyed by `getPauseId`. */
export type ConnectorPauses = ReadonlyMap<string, ConnectorPauseDocument>;

/** The environment is part of it: a test system's pause never concerns a live bank of its name. */
export function getPauseId({ connector, livemode }: PauseScope): string {
  return `${toEnv(livemode)}:${connector}`;
}

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
    get: (_id: string, session?: ClientSession) => pauses.findOne({ _id }, { session }),
    insert: (pause: ConnectorPauseDocument, session: ClientSession) =>
      pauses.insertOne(pause, { session }),
    /** @returns the removed pause; null without one */
    remove: (_id: string, session: ClientSession) => pauses.findOneAndDelete({ _id }, { session }),
  };
}
