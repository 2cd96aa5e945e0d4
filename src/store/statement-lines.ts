import type { ClientSession, Db } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';
import type { StatementLine } from '../domain/banks/statement';
import { afterRow, countBy, LIST_MS_MAX } from './list';

export interface OfAccount {
  bank_account_id: string;
  connector: string;
  livemode: boolean;
  iban: string;
  /** ISO 4217. */
  currency: string;
}

/**
 * `matched` with our entries, `booked` as a charge, or `open`; in a notification: `announced`, or
 * `repeated` when a statement has it.
 */
export type LineStatus =
  | 'matched'
  | 'booked'
  | 'open'
  | 'announced'
  | 'repeated'
  /** Its statement was given up. */
  | 'abandoned';

export interface LineDocument extends OfAccount, StatementLine {
  /** `{statement}:{number}` */
  _id: string;
  statement: string;
  status: LineStatus;
  entries: string[];
  /** Minor units that are not in suspense. */
  parts: { clearing: number; bank_fees: number };
  /** Entry of another amount that an open line names. */
  different: string | null;
  /** Earlier line of the same name and amount; only an operator matches this one. */
  repeats: string | null;
  /** An operator undid a match; only an operator matches it again. */
  held: boolean;
  owner: string | null;
  /** Counts changes of the match. */
  version: number;
  /** An operator knows why no statement has this announced credit. */
  acknowledged?: { operator: string; reason: string; at: string };
}

/** Announced credits of an account and a day, which no statement has. */
export interface NotRepeated {
  bank_account_id: string;
  livemode: boolean;
  currency: string;
  day: string;
  /** Minor units. */
  amount: number;
  count: number;
}

/** Lines of an account that are open for too long; the day is that of the oldest. */
export type OverdueLines = NotRepeated;

export type LineChange = Partial<
  Pick<
    LineDocument,
    'status' | 'entries' | 'parts' | 'different' | 'repeats' | 'held' | 'owner' | 'version'
  >
>;

export interface OpenLines {
  connector: string;
  livemode: string;
  count: number;
  day: string;
}

const LISTED_MAX = 1_000;

function filterNamed(references: readonly string[]) {
  const $in = [...references];
  return { $or: [{ bank_reference: { $in } }, { entry_reference: { $in, $exists: true } }] };
}

/** Names the lines of another statement that have the numbers of these. */
function nameSame(statement: string, rows: readonly LineDocument[]): string[] {
  return rows.map((row) => `${statement}${row._id.slice(row.statement.length)}`);
}

export function createStatementLines(db: Db) {
  const lines = db.collection<LineDocument>('statement_lines');
  return {
    ensureLineIndexes: indexBuilder(lines, [
      { key: { statement: 1, status: 1, day: 1, entry: 1, _id: 1 }, name: 'statement_status' },
      { key: { bank_account_id: 1, bank_reference: 1 }, name: 'bank_reference' },
      {
        key: { bank_account_id: 1, entry_reference: 1 },
        name: 'entry_reference',
        partialFilterExpression: { entry_reference: { $exists: true } },
      },
      {
        key: { bank_account_id: 1, day: 1, _id: 1 },
        name: 'open',
        partialFilterExpression: { status: 'open' },
      },
      {
        key: { bank_account_id: 1, day: 1, _id: 1 },
        name: 'announced',
        partialFilterExpression: { status: 'announced' },
      },
    ]),
    getLine: (_id: string, session?: ClientSession) => lines.findOne({ _id }, { session }),
    getLines: (ids: readonly string[], session?: ClientSession) =>
      lines.find({ _id: { $in: [...ids] } }, { session }).toArray(),
    findStored: async (ids: readonly string[], session: ClientSession): Promise<Set<string>> => {
      const options = { session, projection: { _id: 1 }, batchSize: ids.length + 1 };
      const found = await lines.find({ _id: { $in: [...ids] } }, options).toArray();
      return new Set(found.map(({ _id }) => _id));
    },
    insertLines: (rows: readonly LineDocument[], session: ClientSession) =>
      lines.insertMany([...rows], { session }),
    /** @returns false when another call changed it meanwhile */
    changeLine: async (
      { _id, version }: Pick<LineDocument, '_id' | 'version'>,
      change: LineChange,
      session: ClientSession,
    ): Promise<boolean> => {
      const update = { $set: change };
      return (await lines.updateOne({ _id, version }, update, { session })).matchedCount === 1;
    },
    findByBankReference: (
      bank_account_id: string,
      references: readonly string[],
      session?: ClientSession,
    ) =>
      lines
        .find({ bank_account_id, bank_reference: { $in: [...references] } }, { session })
        .toArray(),
    /** Finds parts with references of their own by that of their entry. */
    findByEntryReference: (
      bank_account_id: string,
      references: readonly string[],
      statement: string | { $ne: string },
      session: ClientSession,
    ) => {
      const entry_reference = { $in: [...references], $exists: true };
      return lines.find({ bank_account_id, entry_reference, statement }, { session }).toArray();
    },
    /** Finds what notifications have by references of entries, or of parts. */
    findAnnounced: (
      bank_account_id: string,
      references: readonly string[],
      limit: number,
      session?: ClientSession,
    ) => {
      const status = { $in: ['announced', 'repeated'] satisfies LineStatus[] };
      const filter = { bank_account_id, status, ...filterNamed(references) };
      return lines.find(filter, { session }).limit(limit).toArray();
    },
    /** Database of a connector, which has the files that it sends. */
    openConnectorDb: (connector: string): Db => db.client.db(`${db.databaseName}_${connector}`),
    listLines: (
      filter: { statement: { $in: string[] } } & Partial<Pick<LineDocument, 'status'>>,
      limit: number,
    ) => lines.find(filter).sort({ day: 1, entry: 1, _id: 1 }).limit(limit).toArray(),
    /** Lists the oldest first. */
    listWaiting: (
      bank_account_id: string,
      status: 'open' | 'announced',
      place: { after?: LineDocument | undefined; before?: string; limit: number },
    ) => {
      const { after, before, limit } = place;
      const days = before === undefined ? {} : { day: { $lt: before } };
      const next = afterRow('day', after && { _id: after._id, value: after.day });
      return lines
        .find({ bank_account_id, status, ...days, ...next })
        .sort({ day: 1, _id: 1 })
        .limit(limit)
        .toArray();
    },
    /** Sums announced credits of days before one, the earliest first. */
    sumNotRepeated: (before: string, isAcknowledged = false): Promise<NotRepeated[]> =>
      lines
        .aggregate<NotRepeated>(
          [
            {
              $match: {
                // Named for its index.
                ...{ bank_account_id: { $gt: '' }, day: { $lt: before } },
                ...{ status: 'announced', amount: { $gt: 0 } },
                acknowledged: { $exists: isAcknowledged },
              },
            },
            {
              $group: {
                _id: { bank_account_id: '$bank_account_id', day: '$day' },
                livemode: { $first: '$livemode' },
                currency: { $first: '$currency' },
                amount: { $sum: '$amount' },
                count: { $sum: 1 },
              },
            },
            { $sort: { '_id.day': 1, '_id.bank_account_id': 1 } },
            { $limit: LISTED_MAX },
            { $replaceWith: { $mergeObjects: ['$$ROOT', '$_id'] } },
            { $project: { _id: 0 } },
          ],
          { maxTimeMS: LIST_MS_MAX },
        )
        .toArray(),
    /** Sums open lines of days before that of their account. */
    sumOverdue: async (
      groups: readonly { before: string; accounts: string[] }[],
    ): Promise<OverdueLines[]> => {
      if (groups.length === 0) return [];
      const $or = groups.map(({ before, accounts }) => ({
        ...{ bank_account_id: { $in: accounts }, day: { $lt: before }, status: 'open' },
      }));
      const sums = {
        ...{ livemode: { $first: '$livemode' }, currency: { $first: '$currency' } },
        ...{ day: { $min: '$day' }, amount: { $sum: '$amount' }, count: { $sum: 1 } },
      };
      return await lines
        .aggregate<OverdueLines>(
          [
            { $match: { $or } },
            { $group: { _id: '$bank_account_id', ...sums } },
            { $set: { bank_account_id: '$_id' } },
            { $project: { _id: 0 } },
          ],
          { maxTimeMS: LIST_MS_MAX },
        )
        .toArray();
    },
    /** @returns number of lines */
    acknowledgeNotRepeated: async (
      { bank_account_id, day }: Pick<NotRepeated, 'bank_account_id' | 'day'>,
      acknowledged: NonNullable<LineDocument['acknowledged']>,
      session: ClientSession,
    ): Promise<number> => {
      const filter = { bank_account_id, status: 'announced', day, amount: { $gt: 0 } } as const;
      const open = { ...filter, acknowledged: { $exists: false } };
      return (await lines.updateMany(open, { $set: { acknowledged } }, { session })).modifiedCount;
    },
    /** Repeats what was announced of these lines before their statement could be imported. */
    repeatSame: async (
      announced: string,
      rows: readonly LineDocument[],
      session: ClientSession,
    ): Promise<void> => {
      const [{ statement } = { statement: '' }] = rows;
      const number = { $substrBytes: ['$_id', announced.length, -1] };
      await lines.updateMany(
        { _id: { $in: nameSame(announced, rows) }, status: 'announced' },
        [{ $set: { status: 'repeated', repeats: { $concat: [statement, number] } } }],
        { session },
      );
    },
    listLeft: (statement: string, limit: number, session: ClientSession) =>
      lines
        .find({ statement, status: { $ne: 'abandoned' } }, { session })
        .limit(limit)
        .toArray(),
    /**
     * Gives lines up, and announces again what they had repeated.
     * @param announced notification of the same lines
     */
    abandonLines: async (
      rows: readonly LineDocument[],
      announced: string | undefined,
      session: ClientSession,
    ): Promise<void> => {
      const ids = rows.map(({ _id }) => _id);
      const nothing = { entries: [], parts: { clearing: 0, bank_fees: 0 }, different: null };
      const set = { status: 'abandoned' as const, ...nothing };
      const abandoned = { $set: set, $inc: { version: 1 } };
      await lines.updateMany({ _id: { $in: ids } }, abandoned, { session });
      const names = rows.flatMap((row) =>
        [row.bank_reference ?? [], row.entry_reference ?? []].flat(),
      );
      const repeated = { status: 'repeated' as const, repeats: { $in: ids } };
      const again = { $set: { status: 'announced' as const, repeats: null } };
      if (announced !== undefined) {
        const same = { _id: { $in: nameSame(announced, rows) } };
        await lines.updateMany({ ...same, ...repeated }, again, { session });
      }
      const [first] = rows;
      if (first === undefined || names.length === 0) return;
      const { bank_account_id } = first;
      const named = { bank_account_id, ...filterNamed(names) };
      await lines.updateMany({ ...named, ...repeated }, again, { session });
    },
    hasOpen: async (ids: readonly string[]): Promise<boolean> => {
      const filter = { statement: { $in: [...ids] }, status: 'open' as const };
      return (await lines.findOne(filter, { projection: { _id: 1 } })) !== null;
    },
    countLines: async (ids: readonly string[]): Promise<Partial<Record<LineStatus, number>>> => {
      // Without a limit: an import counts the lines of a large statement once it is stored.
      const counts = await lines
        .aggregate<{ _id: LineStatus; count: number }>([
          { $match: { statement: { $in: [...ids] } } },
          { $group: { _id: '$status', count: { $sum: 1 } } },
        ])
        .toArray();
      return Object.fromEntries(counts.map(({ _id, count }) => [_id, count]));
    },
    countOpen: (): Promise<OpenLines[]> =>
      countBy(
        lines,
        { status: 'open' },
        { connector: '$connector', livemode: '$livemode' },
        { day: { $min: '$day' } },
      ),
  };
}
