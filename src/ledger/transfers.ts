import type { ClientSession, Collection } from 'mongodb';
import type { NamedIndex } from '../base/mongo-indexes';
import type { EntryStateDocument } from './documents';
import type { TransferEnd } from './entries';
import type { ClearingScope } from './uncleared';

/** Days for which the other end of a transfer between own accounts may be missing. */
export const TRANSFER_DAYS = 5;

/** Days of ends whose names are looked for in texts of banks. */
const NAMED_DAYS = 90;

const DAY_MS = 86_400_000;

const OPEN = { transfer: { $exists: true }, 'transfer.other': null } as const;

/** Ends that amounts find; more cannot decide. */
const FOUND_MAX = 1_000;

export const TRANSFER_INDEX: NamedIndex = {
  key: { livemode: 1, currency: 1, 'transfer.other': 1, 'transfer.day': 1 },
  name: 'transfer',
  partialFilterExpression: { transfer: { $exists: true } },
};

/** End whose other end is missing. */
export interface OpenTransfer extends Omit<TransferEnd, 'other'> {
  entry_id: string;
  connector: string;
  /** Minor units as the statement has them: above 0 comes in. */
  amount: number;
  bank_reference: string | null;
}

type Place = Pick<ClearingScope, 'livemode' | 'currency'>;

/** Two entries on `platform.in_transit` are the ends of one transfer. @see docs/ledger.md#own-transfers */
export function createTransfers(states: Collection<EntryStateDocument>, now: () => Date) {
  return {
    /** Lists the earliest first. @param amounts minor units of the end; absent: all */
    listOpenTransfers: async (
      place: Place,
      amounts?: readonly number[],
      session?: ClientSession,
    ): Promise<OpenTransfer[]> => {
      if (amounts?.length === 0) return [];
      const ofAmounts = amounts === undefined ? {} : { bank_amount: { $in: [...amounts] } };
      return await states
        .find({ ...place, ...OPEN, ...ofAmounts }, { session })
        .sort({ 'transfer.day': 1, _id: 1 })
        .limit(FOUND_MAX)
        .map(({ _id: entry_id, uncleared, cleared, bank_amount, ...state }): OpenTransfer => {
          const { day = '', until = '', names = [] } = state.transfer ?? {};
          const connector = uncleared ?? cleared ?? '';
          const { bank_reference = null } = state;
          const amount = Number(bank_amount);
          return { entry_id, connector, amount, bank_reference, day, until, names };
        })
        .toArray();
    },
    /** Makes two ends one transfer. @throws Error where one has another end: let it abort */
    joinTransfer: async (
      [one, other]: readonly [string, string],
      session: ClientSession,
    ): Promise<void> => {
      for (const [_id, end] of [
        [one, other],
        [other, one],
      ] as const) {
        const joined = { $set: { 'transfer.other': end } };
        const { modifiedCount } = await states.updateOne({ _id, ...OPEN }, joined, { session });
        if (modifiedCount !== 1) throw new Error(`The transfer of ${_id} has another end.`);
      }
    },
    /** Takes an end out that was posted in error: the other one is missing its end again. */
    leaveTransfer: async (_id: string, session: ClientSession): Promise<void> => {
      const left = await states.findOneAndUpdate(
        { _id, transfer: { $exists: true } },
        { $unset: { transfer: '' } },
        { session },
      );
      const other = left?.transfer?.other ?? null;
      if (other === null) return;
      await states.updateOne({ _id: other }, { $set: { 'transfer.other': null } }, { session });
    },
    /** Lists the names under which banks may have the other ends. */
    listTransferNames: async (livemode: boolean): Promise<string[]> => {
      const since = new Date(now().getTime() - NAMED_DAYS * DAY_MS).toISOString().slice(0, 10);
      const recent = { livemode, transfer: { $exists: true }, 'transfer.day': { $gte: since } };
      return await states.distinct('transfer.names', recent);
    },
    /** Adds names that a bank has given to an end since. */
    nameTransfer: async (_id: string, names: readonly string[]): Promise<void> => {
      const added = { $addToSet: { 'transfer.names': { $each: [...names] } } };
      await states.updateOne({ _id, transfer: { $exists: true } }, added);
    },
  };
}
