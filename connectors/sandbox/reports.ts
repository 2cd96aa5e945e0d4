import type { MongoClient } from 'mongodb';
import type { Logger } from '../../src/base/log';
import { inTransaction } from '../../src/base/mongo';
import type { MovementStore } from '../../src/service/banks/sandbox-bank/movements';
import type { SandboxReport, SandboxReportStore } from '../../src/store/sandbox-reports';
import { startLoop } from './loop';
import type { Outbox } from './outbox';

export interface ReportDeps {
  mongo: MongoClient;
  connector: string;
  reports: SandboxReportStore;
  movements: MovementStore;
  outbox: Outbox;
  log: Logger;
}

export function startReportTaker(deps: ReportDeps) {
  const { connector, reports, log } = deps;
  const loop = startLoop({
    round: async () => {
      const due = await reports.listDue(connector);
      await takeAll(deps, due);
      return due.length > 0;
    },
    failureText: 'the simulated reports could not be read',
    log,
  });
  return {
    stop: loop.stop,
    take: async (resource_id: string): Promise<void> =>
      await takeAll(deps, await reports.listDue(connector, resource_id)),
  };
}

/** Handles reports in order for one resource, in parallel for different ones. */
async function takeAll(deps: ReportDeps, due: readonly SandboxReport[]): Promise<void> {
  const ids = [...new Set(due.map(({ resource_id }) => resource_id))];
  await Promise.all(
    ids.map(async (id) => {
      for (const report of due) if (report.resource_id === id) await take(deps, report);
    }),
  );
}

/** Books a report and stores its callback in one transaction, once. */
async function take(
  { mongo, reports, movements, outbox }: ReportDeps,
  report: SandboxReport,
): Promise<void> {
  await inTransaction(mongo, async (session) => {
    if (!(await reports.take(report._id, session))) return;
    await movements.book({ ...report, decision: report._id }, session);
    await outbox.addReport(report, session);
  });
}
