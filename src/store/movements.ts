import type { ClientSession, Db } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';
import type { CallbackResource } from '../domain/banks/callback';
import {
  getState,
  type Movement,
  type MovementSource,
  type MovementState,
  type Resolution,
} from '../domain/banks/movement';
import { omitUndefined } from '../domain/defined';
import { afterRow, countBy, LIST_MS_MAX } from './list';

/** @see docs/ledger.md#bank-movements */
export interface MovementDocument extends Omit<Movement, 'id' | 'sources'> {
  _id: string;
  connector: string;
  livemode: boolean;
  account_id: string;
  /** Null where an operator's act posts it, which `sources` name. */
  resource: CallbackResource | null;
  resource_id: string | null;
  /** Dispute of the payment that moved it. */
  dispute?: string;
  /** Version of the resource with it: orders the movements of one. */
  order: number;
  sources: MovementSource[];
  state: MovementState;
  /** Id of the entry that moves `clearing.CONNECTOR` for it. */
  entry: string;
}

/** Index that a second movement of the same name violates. */
export const MOVEMENT_NAMES = 'names';

const SUSPENSE = { state: 'suspense' } as const;

/** Deposits that the chain has removed, until an operator decides. */
const REORGED = { state: 'suspense', reason: 'deposit_undone' } as const;

export interface MovementFilter {
  connector?: string | undefined;
  livemode?: boolean | undefined;
  resource_id?: string | undefined;
  /** In suspense only. */
  open?: boolean;
  /** Last row of the page before. */
  after?: Pick<MovementDocument, 'reported_at' | '_id'> | undefined;
}

type BookOwner = Pick<MovementDocument, 'account_id' | 'livemode' | 'currency'>;

export interface Suspense {
  connector: string;
  livemode: string;
  count: number;
  /** ISO 8601, ms. */
  since: string;
}

/** Register of what banks moved, one row for each movement. */
export function createMovementStore(db: Db) {
  const movements = db.collection<MovementDocument>('bank_movements');
  return {
    ensureIndexes: indexBuilder(movements, [
      { key: { connector: 1, livemode: 1, names: 1 }, name: MOVEMENT_NAMES, unique: true },
      { key: { entry: 1 }, name: 'entry', unique: true },
      { key: { resource_id: 1, order: 1 }, name: 'resource' },
      { key: { reported_at: 1, _id: 1 }, name: 'reported' },
      { key: { reported_at: 1, _id: 1 }, name: 'suspense', partialFilterExpression: SUSPENSE },
      {
        key: { account_id: 1, livemode: 1, currency: 1 },
        name: 'reorged',
        partialFilterExpression: REORGED,
      },
    ]),
    get: (_id: string) => movements.findOne({ _id }),
    /** Oldest first. */
    forResource: (resource_id: string, session?: ClientSession): Promise<MovementDocument[]> =>
      movements.find({ resource_id }, { session }).sort({ order: 1 }).toArray(),
    /** Oldest first. */
    list: (
      { open, after, connector, livemode, resource_id }: MovementFilter,
      limit: number,
    ): Promise<MovementDocument[]> => {
      const own = omitUndefined({ connector, livemode, resource_id });
      const last = after && { _id: after._id, value: after.reported_at };
      const place = afterRow('reported_at', last);
      return movements
        .find({ ...own, ...(open ? SUSPENSE : {}), ...place })
        .sort({ reported_at: 1, _id: 1 })
        .limit(limit)
        .maxTimeMS(LIST_MS_MAX)
        .toArray();
    },
    /** Counts what is in suspense, and its oldest report. */
    countSuspense: (): Promise<Suspense[]> =>
      countBy(
        movements,
        SUSPENSE,
        { connector: '$connector', livemode: '$livemode' },
        { since: { $min: '$reported_at' } },
      ),
    /** Keeps resources with money in suspense that the bank is to send back. */
    keepLate: async (ids: readonly string[]): Promise<string[]> => {
      const late = await movements.distinct('resource_id', {
        ...{ resource_id: { $in: [...ids] }, ...SUSPENSE },
        $or: [{ reason: 'late' }, { is_returning: true }],
      });
      return late.flatMap((id) => id ?? []);
    },
    /** Sums what was credited and the chain has removed: no settlement pays it out. */
    sumReorged: async (
      { account_id, livemode, currency }: BookOwner,
      session?: ClientSession,
    ): Promise<bigint> => {
      const filter = { account_id, livemode, currency, ...REORGED };
      const rows = await movements.find(filter, { session }).toArray();
      return rows.reduce((sum, { amount }) => sum + BigInt(amount), 0n);
    },
    /** @throws MongoServerError duplicate key of `names` where another resource has a name */
    insert: (movement: MovementDocument, session: ClientSession) =>
      movements.insertOne(movement, { session }),
    findByNames: (
      { connector, livemode }: Pick<MovementDocument, 'connector' | 'livemode'>,
      names: readonly string[],
      session?: ClientSession,
    ): Promise<MovementDocument[]> =>
      movements.find({ connector, livemode, names: { $in: [...names] } }, { session }).toArray(),
    findByEntries: (ids: readonly string[], session?: ClientSession): Promise<MovementDocument[]> =>
      movements.find({ entry: { $in: [...ids] } }, { session }).toArray(),
    addSource: (
      _id: string,
      source: MovementSource,
      { names, bank_reference }: Partial<Pick<MovementDocument, 'names' | 'bank_reference'>>,
      session: ClientSession,
    ) =>
      movements.updateOne(
        { _id },
        { $set: omitUndefined({ names, bank_reference }), $push: { sources: source } },
        { session },
      ),
    /** Writes what is applied or resolved. The version of its resource guards it. */
    change: (
      movement: Pick<Movement, 'id' | 'amount' | 'applied' | 'resolutions'>,
      change: Partial<Pick<Movement, 'applied' | 'reason' | 'is_returning' | 'is_debited'>> & {
        names?: string[];
        resolutions?: readonly Resolution[];
      },
      session: ClientSession,
    ) => {
      const state = getState({ ...movement, ...change });
      return movements.updateOne({ _id: movement.id }, { $set: { ...change, state } }, { session });
    },
  };
}

export function toMovement({ _id: id, ...row }: MovementDocument): Movement {
  const { names, bank_reference, direction, amount, currency, value_date } = row;
  const { reported_at, sources, reason, applied, resolutions } = row;
  const { fee, available_on, is_returning, is_debited } = row;
  return {
    id,
    names,
    bank_reference,
    direction,
    amount,
    currency,
    value_date,
    reported_at,
    sources,
    reason,
    applied,
    resolutions,
    ...omitUndefined({ fee, available_on, is_returning, is_debited }),
  };
}
