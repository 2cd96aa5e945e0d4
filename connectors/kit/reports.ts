import type { Db } from 'mongodb';
import { ZodError } from 'zod';
import { createGate } from '../../src/base/gate';
import type { Logger } from '../../src/base/log';
import { isDuplicateKey } from '../../src/base/mongo';
import { addDays, buildUnexplained, findUnexplained } from '../../src/domain/banks/statement';
import type { BankAccountDocument } from '../../src/store/bank-accounts';
import { openMadeStatements, openMadeTransfers } from '../../src/store/statements';
import { CallbackConflict } from '../contract/callbacks';
import type { Malformed, Poll, Report, Settings, Statements, Tools } from './definition';
import type { KitMeter } from './metrics';
import type { ConnectorProcess } from './process';

interface ReportDeps {
  db: Db;
  deliver: (report: Report) => Promise<unknown>;
  meter: Pick<KitMeter, 'setAside'>;
  log: Pick<Logger, 'error'>;
  now: () => Date;
}

/** Report that was refused, stored for an operator. */
interface SetAside {
  _id: string;
  report: Report;
  why: string;
  at: Date;
  /** Time of the next delivery; null: no repeat can deliver it. */
  retry_at: Date | null;
  /** Deliveries that were refused. */
  tries: number;
}

/** Without a report: what the connector could not read, which nothing delivers again. */
type Row = Omit<SetAside, 'report'> & Partial<Pick<SetAside, 'report'>>;

const COLLECTION = 'reports_set_aside';
const AT_ONCE = 10;
const RETRIES_AT_ONCE = 200;
const RETRY_MS_MIN = 60_000;
const RETRY_MS_MAX = 3_600_000;

/** Refusals that last until an operator acts, and may end then. */
const REFUSALS: readonly unknown[] = ['rate_limited', 'record_behind'];

/**
 * Delivers reports, those of one resource in their order.
 * @returns those that were not applied, since the connector has no such resource
 */
export type DeliverReports = (reports: readonly Report[]) => Promise<readonly Report[]>;

/**
 * Sets a report aside that is malformed, contradicts an earlier one or stays refused, so that it
 * does not keep back those behind it. Refused ones, and those behind them of the same resource, are
 * delivered later by `retry`.
 * @returns `deliver` and `retry` throw if a report has to be delivered again
 */
export function createReportDelivery({ db, deliver, meter, log, now }: ReportDeps) {
  const setAside = db.collection<SetAside>(COLLECTION);
  const rows = db.collection<Row>(COLLECTION);
  const put = async ({ _id, ...row }: Omit<Row, 'at' | 'tries'>, about: object) => {
    const $setOnInsert = { ...row, at: now(), tries: 1 };
    const { upsertedCount } = await rows.updateOne({ _id }, { $setOnInsert }, { upsert: true });
    if (upsertedCount === 0) return;
    meter.setAside();
    log.error({ ...about, code: row.why }, 'a report of the bank was set aside');
  };
  const putReport = async (report: Report, why: string, retry_at: Date | null): Promise<void> => {
    const { resource, resource_id, name, callback } = report;
    const about = { [`${resource}_id`]: resource_id, callback_id: callback.callback_id };
    // With its resource: a bank may give several facts one ID, and each is a row.
    const _id = `${callback.callback_id}:${name}:${resource_id}`;
    await put({ _id, report, why, retry_at }, about);
  };
  /** @returns why it was set aside, for good or until `retry_at` */
  const deliverOne = async (report: Report, parked: Report[] = []) => {
    try {
      if ((await deliver(report)) === 'parked') parked.push(report);
      return undefined;
    } catch (error) {
      // Every repeat would have these, too.
      if (error instanceof ZodError) {
        const fields = error.issues.map(({ path }) => path.join('.'));
        return { why: `malformed: ${fields.join(', ')}`, isFinal: true };
      }
      if (error instanceof RangeError)
        return { why: 'no such callback of the resource', isFinal: true };
      if (error instanceof CallbackConflict)
        return { why: 'callback_id of another fact', isFinal: true };
      const { code } = Object(error);
      if (REFUSALS.includes(code)) return { why: `refused: ${code}`, isFinal: false };
      throw error;
    }
  };
  const deliverGroup = async (
    group: readonly Report[],
    waiting: Date | undefined,
    parked: Report[],
  ) => {
    let retryAt = waiting;
    for (const report of group) {
      const refusal = retryAt === undefined ? await deliverOne(report, parked) : BEHIND;
      if (refusal === undefined) continue;
      if (!refusal.isFinal) retryAt ??= new Date(now().getTime() + RETRY_MS_MIN);
      await putReport(report, refusal.why, refusal.isFinal ? null : (retryAt ?? null));
    }
  };
  const retryGroup = async (rows: readonly SetAside[]): Promise<void> => {
    for (const { _id, report, tries } of rows) {
      const refusal = await deliverOne(report);
      if (refusal === undefined) await setAside.deleteOne({ _id });
      else if (refusal.isFinal) {
        await setAside.updateOne({ _id }, { $set: { why: refusal.why, retry_at: null } });
      } else {
        const wait = Math.min(RETRY_MS_MIN * 2 ** Math.min(tries, 10), RETRY_MS_MAX);
        const retry_at = new Date(now().getTime() + wait);
        const { resource_id } = report;
        const waits = { 'report.resource_id': resource_id, retry_at: { $ne: null } };
        await setAside.updateMany(waits, { $set: { retry_at }, $inc: { tries: 1 } });
        return;
      }
    }
  };
  const runGroups = async <G>(groups: readonly G[], work: (group: G) => Promise<void>) => {
    const errors: unknown[] = [];
    const gate = createGate(AT_ONCE);
    const run = async (group: G): Promise<void> => {
      // All are delivered again: the others would fail for the same reason.
      if (errors.length > 0) return;
      await work(group).catch((error: unknown) => errors.push(error));
    };
    await Promise.all(groups.map((group) => gate(() => run(group))));
    if (errors.length > 0) throw errors[0];
  };
  return {
    ensureIndexes: () =>
      setAside.createIndexes([
        { key: { retry_at: 1 }, name: 'retry' },
        { key: { 'report.resource_id': 1 }, name: 'resource' },
      ]),
    deliver: async (reports: readonly Report[]): Promise<readonly Report[]> => {
      const groups = groupByResource(reports);
      const ids = groups.flatMap(([first]) => first?.resource_id ?? []);
      const waits = { 'report.resource_id': { $in: ids }, retry_at: { $ne: null } };
      const earlier = ids.length === 0 ? [] : await setAside.find(waits).toArray();
      const waiting = new Map(
        earlier.map(({ report, retry_at }) => [report.resource_id, retry_at]),
      );
      const parked: Report[] = [];
      await runGroups(groups, (group) =>
        deliverGroup(group, waiting.get(group[0]?.resource_id ?? '') ?? undefined, parked),
      );
      return parked;
    },
    /** Sets aside what the connector could not read. */
    setAside: ({ id, why }: Malformed) =>
      put({ _id: id, why: `malformed: ${why}`, retry_at: null }, { id }),
    countSetAside: () => rows.estimatedDocumentCount(),
    /** @returns whether more may be due */
    retry: async (): Promise<boolean> => {
      const due = await setAside
        .find({ retry_at: { $lte: now() } })
        .sort({ at: 1 })
        .limit(RETRIES_AT_ONCE)
        .toArray();
      await runGroups(
        groupBy(due, ({ report }) => report.resource_id),
        retryGroup,
      );
      return due.length === RETRIES_AT_ONCE;
    },
  };
}

const BEHIND = { why: 'behind a refused one', isFinal: false };

export function groupByResource(reports: readonly Report[]): Report[][] {
  return groupBy(reports, ({ resource_id }) => resource_id);
}

function groupBy<T>(items: readonly T[], getKey: (item: T) => string): T[][] {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const group = groups.get(getKey(item));
    if (group === undefined) groups.set(getKey(item), [item]);
    else group.push(item);
  }
  return [...groups.values()];
}

interface Cursor {
  _id: 'poll';
  value: string | null;
}

interface PollerDeps<S extends Settings> {
  db: Db;
  poll: Poll<S>;
  tools: Tools<S>;
  deliver: DeliverReports;
  setAside: (malformed: Malformed) => Promise<void>;
  meter: Pick<KitMeter, 'polled'>;
}

/**
 * Reads reports from a stored cursor, which advances once they are delivered. Several processes may
 * poll: the cursor only advances from where a process has read.
 * @returns function that reads once, and returns whether more may be there
 */
export function createPoller<S extends Settings>({
  db,
  poll,
  tools,
  deliver,
  setAside,
  meter,
}: PollerDeps<S>): () => Promise<boolean> {
  const cursors = db.collection<Cursor>('cursors');
  const advance = async (from: string | null, value: string | null): Promise<void> => {
    try {
      await cursors.updateOne({ _id: 'poll', value: from }, { $set: { value } }, { upsert: true });
    } catch (error) {
      // Another process has advanced it: the next round reads from there.
      if (!isDuplicateKey(error)) throw error;
    }
  };
  const { acknowledge } = poll;
  if (acknowledge !== undefined) {
    const gate = createGate(AT_ONCE);
    return async () => {
      const { reports, malformed = [], more = false } = await poll.read(null, tools);
      for (const each of malformed) await setAside(each);
      const groups = groupByResource(reports);
      const results = await Promise.allSettled(groups.map((group) => gate(() => deliver(group))));
      const delivered = groups.filter((_group, at) => results[at]?.status === 'fulfilled').flat();
      if (delivered.length > 0) await acknowledge(delivered, tools);
      for (const result of results) if (result.status === 'rejected') throw result.reason;
      if (!more) meter.polled();
      return more;
    };
  }
  return async () => {
    const from = (await cursors.findOne({ _id: 'poll' }))?.value ?? null;
    const { reports, malformed = [], cursor, more = false } = await poll.read(from, tools);
    await deliver(reports);
    for (const each of malformed) await setAside(each);
    if (cursor !== from) await advance(from, cursor);
    if (!more) meter.polled();
    return more;
  };
}

const HOUR_MS = 3_600_000;

/** From then on, what the bank has not explained is for an operator. */
const LATE_HOURS = 12;

/** Days for which a movement may show late: it is on the next statement then. */
const KNOWN_DAYS = 3;

/** Movements of a day, as one document holds them. */
const LINES_MAX = 100_000;

interface MakerDeps<S extends Settings> extends Pick<ConnectorProcess, 'connector' | 'stores'> {
  statements: Statements<S>;
  db: Db;
  tools: Tools<S>;
  livemode: boolean;
}

/**
 * Makes the statements of registered accounts for each day that is over, in order, and stores each
 * once: a day that is stored never changes.
 * @returns function that makes all that are due
 * @see docs/connectors.md#statements-of-a-balance
 */
export function createStatementMaker<S extends Settings>({
  statements: { readyHours, make, listTransfers },
  ...deps
}: MakerDeps<S>): () => Promise<boolean> {
  const { db, tools, connector, stores, livemode } = deps;
  const made = openMadeStatements(db);
  /** @returns whether the day after it may be due */
  const makeNext = async (bankAccount: BankAccountDocument): Promise<boolean> => {
    const { iban: account, currency, created_at, accepted } = bankAccount;
    const last = await made
      .find({ account, currency })
      .sort({ day: -1 })
      .limit(KNOWN_DAYS + 1)
      .toArray();
    const again = last[0]?.is_proved === false ? last.shift() : undefined;
    const [previous] = last;
    const next = previous === undefined ? created_at.slice(0, 10) : addDays(previous.day, 1);
    const day = again?.day ?? next;
    const since = new Date(last.at(-1)?.day ?? day);
    const end = new Date(addDays(day, 1));
    const hours = (tools.now().getTime() - end.getTime()) / HOUR_MS;
    if (hours < readyHours) return false;
    const known = new Set(last.flatMap(({ lines }) => lines.map((line) => line.bank_reference)));
    const isBooked = (reference: string) => known.has(reference);
    const opening = previous?.closing ?? null;
    const isCompared = hours < 24 || again !== undefined || opening === null;
    const period = { since, end, opening, isBooked, isCompared };
    const statement = await make({ account, currency, ...period }, tools);
    const { length } = statement.lines;
    if (length > LINES_MAX) throw new Error(`${day} has more than ${LINES_MAX} movements.`);
    const rest = findUnexplained(statement);
    if (rest !== 0 && accepted?.day === day && accepted.amount === rest) {
      statement.lines = [...statement.lines, buildUnexplained(day, rest)];
    }
    const is_proved = findUnexplained(statement) === 0;
    if (!is_proved && hours < LATE_HOURS) {
      throw new Error(`What ${account} has moved does not lead to its balance yet: ${day}.`);
    }
    const _id = `${account} ${currency} ${day}`;
    const made_at = tools.now().toISOString();
    const document = { _id, account, currency, day, ...statement, is_proved, made_at };
    try {
      await made.replaceOne({ _id, is_proved: false }, document, { upsert: true });
    } catch (error) {
      // Another process was faster.
      if (!isDuplicateKey(error)) throw error;
    }
    return is_proved;
  };
  const noteTransfers = async (): Promise<void> => {
    const transfers = openMadeTransfers(db);
    const read = new Set(await transfers.distinct('_id', { parts: { $exists: true } }));
    const isRead = (reference: string) => read.has(reference);
    for (const { bank_reference: _id, ...known } of (await listTransfers?.(isRead, tools)) ?? []) {
      await transfers.updateOne({ _id }, { $set: known }, { upsert: true });
    }
  };
  return async () => {
    const errors: unknown[] = [];
    for (const account of await stores.bankAccounts.list({ connector, livemode })) {
      try {
        while (await makeNext(account)) {
          // The days that a stop has left out follow.
        }
      } catch (error) {
        errors.push(error);
      }
    }
    await noteTransfers().catch((error: unknown) => errors.push(error));
    if (errors.length > 0) throw errors[0];
    return false;
  };
}
