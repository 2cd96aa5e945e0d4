import type { Db } from 'mongodb';
import type { Capabilities } from '../domain/capabilities';

/** Last report of a connector's processes; of two versions at once, the last one counts. */
interface CapabilitiesDocument extends Capabilities {
  _id: string;
  seen_at: Date;
}

export function createCapabilitiesStore(db: Db) {
  const reports = db.collection<CapabilitiesDocument>('connector_capabilities');
  return {
    report: async (_id: string, capabilities: Capabilities, seen_at: Date) => {
      const { serves, functions, contract } = capabilities;
      const report = { serves, functions, contract, seen_at };
      await reports.updateOne({ _id }, { $set: report }, { upsert: true });
    },
    get: (connector: string) => reports.findOne({ _id: connector }),
    list: () => reports.find().sort({ _id: 1 }).toArray(),
  };
}
