import type { Db } from 'mongodb';
import { ZodError } from 'zod';
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

/** Delivers reports of the bank in their order. */
export type DeliverReports = (reports: readonly Report[]) => Promise<void>;

/**
 * Creates the delivery of reports. One that is malformed or contradicts an earlier one is set
 * aside, so that it does not keep back those behind it.
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
    for (const report of reports) await deliverOne(report);
  };
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
