import type { ClientSession, Db } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';
import type { StatementFacts } from '../domain/banks/statement';
import { countBy } from './list';

/** Numbers over which a statement jumps although its balance follows on. */
export interface MissingStatements {
  first: number;
  last: number;
  /** Minor units, which they lead from and to. */
  opening: number;
  closing: number;
  /** Days of the statements around them. */
  from_day: string;
  to_day: string;
  /** The one after them, whose day stays open. */
  statement: string;
}

/** Why a file was refused, of which nothing else is stored; or which statements are missing. */
export interface RefusalDocument {
  /** Derived from file and code, or statement, so that a repeat adds none. */
  _id: string;
  connector: string;
  livemode: boolean;
  sha256: string | null;
  code: string;
  message: string;
  bank_account_id: string | null;
  statement_id: string | null;
  /** Kind of which one ends its attention reason. */
  kind?: StatementFacts['kind'];
  /** Its last day. */
  day: string | null;
  /** Difference in minor units. */
  amount: number | null;
  currency: string | null;
  /** ms since the epoch; a repeat renews it. */
  since: number;
  /** True until an operator acknowledges it or the statement is imported. */
  attention: boolean;
  acknowledged: { operator: string; reason: string; at: string } | null;
  missing?: MissingStatements;
  /** File of `bank_file_refused`, and the code of its refusal. */
  file?: { id: string; name: string; code: string };
}

/** Attention reason of a file that was neither taken nor dismissed since. */
export const BANK_FILE_REFUSED = 'bank_file_refused';

export function createStatementRefusals(db: Db) {
  const refusals = db.collection<RefusalDocument>('statement_refusals');
  return {
    ensureRefusalIndexes: indexBuilder(refusals, [
      {
        key: { since: 1, _id: 1 },
        name: 'attention',
        partialFilterExpression: { attention: true },
      },
      { key: { bank_account_id: 1, since: 1 }, name: 'account' },
    ]),
    /** Stores a refusal once; after an acknowledgement it needs an operator again. */
    refuse: async ({ _id, since, ...refusal }: RefusalDocument): Promise<void> => {
      await refusals.updateOne({ _id }, { $setOnInsert: { since, ...refusal } }, { upsert: true });
      if (!refusal.attention) return;
      await refusals.updateOne(
        { _id, attention: false },
        { $set: { attention: true, since, acknowledged: null } },
      );
    },
    noteMissing: async (row: RefusalDocument, session: ClientSession): Promise<void> => {
      await refusals.insertOne(row, { session });
    },
    /** Lists gaps that no statement has filled, also those that an operator has acknowledged. */
    listMissing: (bank_account_id: string, session?: ClientSession) =>
      refusals.find({ bank_account_id, missing: { $type: 'object' } }, { session }).toArray(),
    /** @param left what is left of it: nothing, itself, or two */
    fillMissing: async (
      _id: string,
      left: readonly RefusalDocument[],
      session: ClientSession,
    ): Promise<void> => {
      for (const row of left) {
        await refusals.replaceOne({ _id: row._id }, row, { upsert: true, session });
      }
      if (left.length > 0) return;
      const filled = { $set: { attention: false }, $unset: { missing: '' } } as const;
      await refusals.updateOne({ _id }, filled, { session });
    },
    /** Resolves those of the days of a statement, or of a notification. */
    resolveRefusals: (
      bank_account_id: string,
      { kind, from_day, to_day }: StatementFacts,
      session: ClientSession,
    ) =>
      refusals.updateMany(
        {
          ...{ bank_account_id, attention: true, missing: { $exists: false } },
          day: { $gte: from_day, $lte: to_day },
          $or: [{ kind }, { kind: { $exists: false } }],
        },
        { $set: { attention: false } },
        { session },
      ),
    countRefusals: () =>
      countBy<{ resource: string; livemode: string; reason: string; count: number }>(
        refusals,
        { attention: true },
        { resource: { $literal: 'bank_account' }, livemode: '$livemode', reason: '$code' },
      ),
    listByIds: (ids: readonly string[]) => refusals.find({ _id: { $in: [...ids] } }).toArray(),
    /** Ends the attention reasons of a connector's other files. */
    endOtherFiles: async (
      about: Pick<RefusalDocument, 'connector' | 'livemode'>,
      open: readonly string[],
    ): Promise<void> => {
      const others = { ...about, code: BANK_FILE_REFUSED, _id: { $nin: [...open] } };
      await refusals.updateMany({ ...others, attention: true }, { $set: { attention: false } });
    },
    countFiles: (connector: string) =>
      refusals.countDocuments({ connector, code: BANK_FILE_REFUSED, attention: true }),
    findRefusal: (bank_account_id: string, since: number) =>
      refusals.findOne({ bank_account_id, since }),
    /** Oldest first. */
    listRefusals: (isAcknowledged: boolean, since: number, limit: number) =>
      refusals
        .find({
          ...(isAcknowledged ? { acknowledged: { $type: 'object' } } : { attention: true }),
          since: { $gte: since },
        })
        .sort({ since: 1, _id: 1 })
        .limit(limit)
        .toArray(),
    acknowledgeRefusal: async (
      { _id, since }: Pick<RefusalDocument, '_id' | 'since'>,
      acknowledged: NonNullable<RefusalDocument['acknowledged']>,
      session: ClientSession,
    ): Promise<boolean> => {
      const filter = { _id, since, attention: true };
      const update = { $set: { attention: false, acknowledged } };
      return (await refusals.updateOne(filter, update, { session })).matchedCount === 1;
    },
  };
}
