import type { ClientSession, Db } from 'mongodb';

/** An operator lets a connector that a restore has stopped send again. */
export interface ConnectorReleaseDocument {
  /** ID of the stop, so that no release ends a later one. */
  _id: string;
  connector: string;
  livemode: boolean;
  /** ISO 8601, ms. */
  released_at: string;
  operator: string | null;
  reason: string;
}

/** @see docs/connectors.md#after-a-restore */
export function createConnectorReleaseStore(db: Db) {
  const releases = db.collection<ConnectorReleaseDocument>('connector_releases');
  return {
    get: (_id: string, session?: ClientSession) => releases.findOne({ _id }, { session }),
    insert: (release: ConnectorReleaseDocument, session: ClientSession) =>
      releases.insertOne(release, { session }),
  };
}
