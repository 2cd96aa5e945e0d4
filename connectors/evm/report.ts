import type { Db } from 'mongodb';
import type { CryptoResource } from '../../src/domain/banks/callback';
import type { CryptoCallback } from '../../src/domain/crypto/callback';

export interface Report {
  resource: CryptoResource;
  resource_id: string;
  name: 'deposit' | 'deposit_undone' | 'wrong_asset' | 'sent' | 'completed' | 'failed';
  callback: CryptoCallback;
}

export type PendingReport = Pick<Report, 'name' | 'callback'>;

export type Deliver = (report: Report) => Promise<unknown>;

/** Row that is reported, one report at a time. */
export interface ReportedRow<R> {
  _id: string;
  /** Last report that the service has, if it is still true. */
  reported: R;
  /** Report in progress, stored first so that a repeat is identical. */
  pending_report: PendingReport | null;
  reports: number;
  /** Last delivered report, which an operator may have repeated. */
  last: { report: PendingReport; at: Date } | null;
}

/** Writes the reports of a collection. */
export function createReportStore<R>(db: Db, name: 'deposits' | 'settlements') {
  const rows = db.collection<ReportedRow<unknown> & { reorgs?: number }>(name);
  return {
    /** Stores a report before it is sent. @returns false if another process has */
    plan: async (
      { _id, reports }: Pick<ReportedRow<R>, '_id' | 'reports'>,
      pending_report: PendingReport,
    ): Promise<boolean> => {
      const filter = { _id, reports, pending_report: null };
      const { modifiedCount } = await rows.updateOne(filter, { $set: { pending_report } });
      return modifiedCount === 1;
    },
    markReported: (_id: string, report: PendingReport, reported: R, at: Date) =>
      rows.updateOne(
        { _id, 'pending_report.callback.callback_id': report.callback.callback_id },
        {
          $set: { reported, pending_report: null, last: { report, at } },
          $inc: { reports: 1, ...(report.name === 'deposit_undone' ? { reorgs: 1 } : {}) },
        },
      ),
    /** Repeats reports by their last delivery, under their IDs. @returns number of reports */
    repeatSince: async (since: Date): Promise<number> => {
      const reported = { 'last.at': { $gte: since }, pending_report: null };
      const repeat = [{ $set: { pending_report: '$last.report', is_open: true } }];
      return (await rows.updateMany(reported, repeat)).modifiedCount;
    },
  };
}
