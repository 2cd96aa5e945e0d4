import type { Db } from 'mongodb';
import type { Capabilities } from '../domain/capabilities';

/** Last report of a connector's processes; of two versions at once, the last one counts. */
interface CapabilitiesDocument extends Capabilities {
  /** Name of the connector. */
  _id: string;
  seen_at: Date;
}

export function createCapabilitiesStore(db: Db) {
  const capabilities = db.collection<CapabilitiesDocument>('connector_capabilities');
  return {
    report: async (_id: string, { serves, functions }: Capabilities, seen_at: Date) => {
      const report = { serves, functions, seen_at };
      await capabilities.updateOne({ _id }, { $set: report }, { upsert: true });
    },
    get: (connector: string) => capabilities.findOne({ _id: connector }),
    list: () => capabilities.find().sort({ _id: 1 }).toArray(),
  };
}
