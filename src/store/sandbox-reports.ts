import type { ClientSession, Db } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';
import type { BankCallback } from '../domain/banks/callback';
import type { BankDecision } from '../domain/banks/sandbox';

/** Decision that a simulation makes for the sandbox bank. */
export interface SandboxReport extends BankDecision {
  /** Id of the callback that reports it. */
  _id: string;
  connector: string;
  body: BankCallback;
  at: Date;
}

const BATCH = 50;

export function createSandboxReportStore(db: Db) {
  const reports = db.collection<SandboxReport>('sandbox_reports');
  return {
    ensureIndexes: indexBuilder(reports, [{ key: { connector: 1, at: 1 }, name: 'due' }]),
    add: async (report: SandboxReport): Promise<void> => {
      await reports.insertOne(report);
    },
    /** Oldest first. */
    listDue: (connector: string, resource_id?: string): Promise<SandboxReport[]> =>
      reports
        .find({ connector, ...(resource_id === undefined ? {} : { resource_id }) })
        .sort({ at: 1, _id: 1 })
        .limit(BATCH)
        .toArray(),
    hasDue: async (): Promise<boolean> => (await reports.findOne({})) !== null,
    /** Removes it in the transaction of the bank's book. @returns false if another process did */
    take: async (_id: string, session: ClientSession): Promise<boolean> =>
      (await reports.deleteOne({ _id }, { session })).deletedCount === 1,
  };
}

export type SandboxReportStore = ReturnType<typeof createSandboxReportStore>;
