import type { ClientSession, Collection } from 'mongodb';
import type { NamedIndex } from '../base/mongo-indexes';
import { parseBookCurrency } from '../domain/crypto/assets';
import { omitUndefined } from '../domain/defined';
import type { BankFacts, EntryStateDocument, NewEntry, TransferEnd } from './entries';
import { toStoredInteger } from './ledger-accounts';

export interface ClearingScope {
  connector: string;
  livemode: boolean;
  /** ISO 4217. */
  currency: string;
}

export interface UnclearedEntry extends ClearingScope {
  entry_id: string;
  kind: string;
  resource_id: string;
  /** Minor units as the statement has them: above 0 comes in. */
  amount: number;
  /** Value date, else the day of `at`. */
  day: string;
  /** ISO 8601, ms. */
  at: string;
  bank_reference: string | null;
}

type UnclearedKey =
  | { resource_id: string }
  | { bank_reference: string }
  /** Minor units, as in the statement. */
  | { amount: number; day: string };

type UnclearedKeys =
  | { resource_id: readonly string[] }
  | { bank_reference: readonly string[] }
  | { _id: readonly string[] };

/** Hints, without which a key may read all entries without a line. */
const INDEXES: Readonly<Record<string, string>> = {
  resource_id: 'resource',
  bank_reference: 'bank_reference',
};

const UNCLEARED = { uncleared: { $exists: true } } as const;

/** Entries that one key finds; more cannot decide. */
const FOUND_MAX = 100;
const AMOUNTS_FOUND_MAX = 5;

export const UNCLEARED_INDEXES: readonly NamedIndex[] = [
  {
    key: { uncleared: 1, livemode: 1, currency: 1, bank_day: 1, bank_amount: 1, _id: 1 },
    name: 'uncleared',
    partialFilterExpression: UNCLEARED,
  },
  { key: { resource_id: 1 }, name: 'resource', partialFilterExpression: UNCLEARED },
  { key: { bank_reference: 1 }, name: 'bank_reference', partialFilterExpression: UNCLEARED },
];

/** Another line has an entry already, or it is on no statement. */
export class EntriesCleared extends Error {
  override readonly name = 'EntriesCleared';
}

const CLEARING = 'clearing.';

export function findClearing<Amount>(
  lines: readonly { account: string; amount: Amount }[],
): { connector: string; amount: Amount } | undefined {
  const line = lines.find(({ account }) => account.startsWith(CLEARING));
  return line && { connector: line.account.slice(CLEARING.length), amount: line.amount };
}

/** @returns only the reference for an asset: chains have no statements; else nothing for none */
export function buildBankFacts(
  entry: Pick<NewEntry, 'lines' | 'currency' | 'at' | 'value_date' | 'bank_reference'>,
): BankFacts {
  const { lines, currency, at, value_date } = entry;
  const clearing = findClearing(lines);
  if (clearing === undefined) return {};
  const reference = omitUndefined({ bank_reference: entry.bank_reference || undefined });
  if (parseBookCurrency(currency) !== undefined) return reference;
  return {
    bank_day: value_date ?? at.slice(0, 'YYYY-MM-DD'.length),
    bank_amount: toStoredInteger(-clearing.amount, currency),
    ...reference,
  };
}

function buildClearing(cleared_at: string) {
  return { $rename: { uncleared: 'cleared' }, $set: { cleared_at } };
}

export function createUncleared(states: Collection<EntryStateDocument>, now: () => Date) {
  const find = (filter: object, limit: number, session?: ClientSession) =>
    states
      .find(filter, { session })
      .sort({ bank_day: 1, bank_amount: 1, _id: 1 })
      .limit(limit)
      .map(toUncleared)
      .toArray();

  const change = async (
    ids: readonly string[],
    filter: object,
    update: object,
    session: ClientSession,
  ) => {
    const distinct = [...new Set(ids)];
    const own = { _id: { $in: distinct }, ...filter };
    // Otherwise it may read all entries without a line.
    const { modifiedCount } = await states.updateMany(own, update, { session, hint: '_id_' });
    if (modifiedCount === distinct.length) return;
    throw new EntriesCleared('An entry is on another line, or on no statement.');
  };

  return {
    /**
     * Lists the earliest day first.
     * @param scope `before`, `after`: exclusive days, `YYYY-MM-DD`
     */
    listUncleared: (
      {
        connector,
        before,
        after,
        limit,
        ...scope
      }: ClearingScope & {
        before?: string;
        after?: string;
        limit: number;
      },
      session?: ClientSession,
    ): Promise<UnclearedEntry[]> => {
      const bank_day = omitUndefined({ $lt: before, $gt: after });
      const days = Object.keys(bank_day).length === 0 ? {} : { bank_day };
      return find({ uncleared: connector, ...scope, ...days }, limit, session);
    },
    findUncleared: (
      { connector, livemode, currency, ...key }: ClearingScope & UnclearedKey,
      session?: ClientSession,
    ): Promise<UnclearedEntry[]> => {
      const filter = 'amount' in key ? { bank_amount: key.amount, bank_day: key.day } : key;
      return find({ uncleared: connector, livemode, currency, ...filter }, FOUND_MAX, session);
    },
    /** @returns undefined where they are too many to read for these lines */
    findUnclearedOfAmounts: async (
      { connector, livemode, currency }: ClearingScope,
      amounts: readonly number[],
      days: readonly string[],
      session?: ClientSession,
    ): Promise<UnclearedEntry[] | undefined> => {
      if (amounts.length === 0) return [];
      const bank_amount = { $in: [...new Set(amounts)] };
      const bank_day = { $in: [...new Set(days)] };
      const limit = amounts.length * AMOUNTS_FOUND_MAX;
      const filter = { uncleared: connector, livemode, currency, bank_day, bank_amount };
      const found = await find(filter, limit, session);
      return found.length < limit ? found : undefined;
    },
    getUncleared: (ids: readonly string[]): Promise<UnclearedEntry[]> =>
      find({ _id: { $in: [...ids] }, ...UNCLEARED }, ids.length),
    /** Finds by one of several values; 100 for each at most. */
    findAllUncleared: async (
      { connector, livemode, currency }: ClearingScope,
      key: UnclearedKeys,
      session?: ClientSession,
    ): Promise<UnclearedEntry[]> => {
      const [[name, values] = ['', []]] = Object.entries(key);
      if (values.length === 0) return [];
      const filter = { [name]: { $in: [...new Set(values)] } };
      return await states
        .find({ uncleared: connector, livemode, currency, ...filter }, { session })
        .hint(INDEXES[name] ?? '_id_')
        .limit(values.length * FOUND_MAX)
        // By default, the first batch has 101.
        .batchSize(values.length * FOUND_MAX)
        .map(toUncleared)
        .toArray();
    },
    /** @throws EntriesCleared: let the transaction abort */
    clear: (ids: readonly string[], session: ClientSession): Promise<void> =>
      change(ids, UNCLEARED, buildClearing(now().toISOString()), session),
    /**
     * Clears an entry that its reversal offsets: neither will be on a statement.
     * @returns the time; undefined where a line has the entry already
     */
    offset: async (id: string, session: ClientSession): Promise<string | undefined> => {
      const cleared_at = now().toISOString();
      const { modifiedCount } = await states.updateOne(
        { _id: id, ...UNCLEARED },
        buildClearing(cleared_at),
        { session },
      );
      return modifiedCount === 1 ? cleared_at : undefined;
    },
    /** @throws EntriesCleared: let the transaction abort */
    unclear: (ids: readonly string[], session: ClientSession): Promise<void> =>
      change(
        ids,
        { cleared: { $exists: true } },
        { $rename: { cleared: 'uncleared' }, $unset: { cleared_at: '' } },
        session,
      ),
  };
}

function toUncleared(state: EntryStateDocument): UnclearedEntry {
  const { _id: entry_id, kind = '', resource_id = '', livemode = false, currency = '' } = state;
  const {
    uncleared: connector = '',
    bank_amount,
    bank_day: day = '',
    bank_reference = null,
    at = '',
  } = state;
  return {
    ...{ entry_id, kind, resource_id, connector, livemode, currency },
    ...{ amount: Number(bank_amount), day, at, bank_reference },
  };
}

/** Days for which the other end of a transfer between own accounts may be missing. */
export const TRANSFER_DAYS = 5;

/** Days of ends whose names are looked for in texts of banks. */
const NAMED_DAYS = 90;

const DAY_MS = 86_400_000;

const OPEN = { transfer: { $exists: true }, 'transfer.other': null } as const;

/** Ends that amounts find; more cannot decide. */
const TRANSFERS_FOUND_MAX = 1_000;

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
        .limit(TRANSFERS_FOUND_MAX)
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
