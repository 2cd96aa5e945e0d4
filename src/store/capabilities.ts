import type { Db } from 'mongodb';
import type { Capabilities, ConnectorStop } from '../domain/capabilities';

/** Last report of a connector's processes; of two versions at once, the last one counts. */
interface CapabilitiesDocument extends Capabilities {
  _id: string;
  seen_at: Date;
  /** Null: it sends; undefined: it does not say. */
  stopped?: ConnectorStop | null;
}

export function createCapabilitiesStore(db: Db) {
  const reports = db.collection<CapabilitiesDocument>('connector_capabilities');
  return {
    report: async (
      _id: string,
      { serves, functions, contract, reference_per_step = false }: Capabilities,
      { seen_at, stopped }: { seen_at: Date; stopped: ConnectorStop | null },
    ) => {
      const report = { serves, functions, contract, reference_per_step, seen_at, stopped };
      await reports.updateOne({ _id }, { $set: report }, { upsert: true });
    },
    get: (connector: string) => reports.findOne({ _id: connector }),
    list: () => reports.find().sort({ _id: 1 }).toArray(),
  };
}
