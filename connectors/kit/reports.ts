import type { Db } from 'mongodb';
import { ZodError } from 'zod';
import { createGate } from '../../src/base/gate';
import type { Logger } from '../../src/base/log';
import { CallbackConflict } from '../contract/callbacks';
import type { Report } from './definition';
import type { KitMeter } from './metrics';

interface ReportDeps {
  db: Db;
  deliver: (report: Report) => Promise<unknown>;
  meter: Pick<KitMeter, 'setAside'>;
  log: Pick<Logger, 'error'>;
  now: () => Date;
}

/** Report that no repeat can deliver, stored for an operator. */
interface SetAside {
  _id: string;
  report: Report;
  why: string;
  at: Date;
}

const AT_ONCE = 10;

/** Delivers reports, those of one resource in their order. */
export type DeliverReports = (reports: readonly Report[]) => Promise<void>;

/**
 * Sets a report aside that is malformed or contradicts an earlier one, so that it does not keep
 * back those behind it.
 * @returns function that throws if a report has to be delivered again
 */
export function createReportDelivery({ db, deliver, meter, log, now }: ReportDeps): DeliverReports {
  const setAside = db.collection<SetAside>('reports_set_aside');
  const deliverOne = async (report: Report): Promise<void> => {
    try {
      await deliver(report);
    } catch (error) {
      const why = explainFinal(error);
      if (why === undefined) throw error;
      const { resource, resource_id, name, callback } = report;
      const _id = `${callback.callback_id}:${name}`;
      const row = { report, why, at: now() };
      await setAside.updateOne({ _id }, { $setOnInsert: row }, { upsert: true });
      meter.setAside();
      const about = { [`${resource}_id`]: resource_id, callback_id: callback.callback_id };
      log.error({ ...about, code: why }, 'a report of the bank was set aside');
    }
  };
  return async (reports) => {
    const errors: unknown[] = [];
    const gate = createGate(AT_ONCE);
    const deliverGroup = async (group: readonly Report[]): Promise<void> => {
      // All are delivered again: the others would fail for the same reason.
      if (errors.length > 0) return;
      try {
        for (const report of group) await deliverOne(report);
      } catch (error) {
        errors.push(error);
      }
    };
    const groups = groupByResource(reports);
    await Promise.all(groups.map((group) => gate(() => deliverGroup(group))));
    if (errors.length > 0) throw errors[0];
  };
}

export function groupByResource(reports: readonly Report[]): Report[][] {
  const groups = new Map<string, Report[]>();
  for (const report of reports) {
    const group = groups.get(report.resource_id);
    if (group === undefined) groups.set(report.resource_id, [report]);
    else group.push(report);
  }
  return [...groups.values()];
}

/** Explains an error that every repeat would have, too. */
function explainFinal(error: unknown): string | undefined {
  if (error instanceof ZodError) {
    const fields = error.issues.map(({ path }) => path.join('.'));
    return `malformed: ${fields.join(', ')}`;
  }
  if (error instanceof RangeError) return 'no such callback of the resource';
  if (error instanceof CallbackConflict) return 'callback_id of another fact';
  return undefined;
}
