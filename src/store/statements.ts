import type { ClientSession, Collection, Db } from 'mongodb';
import { indexBuilder, type MissingIndexes } from '../base/mongo-indexes';
import type { MadeStatement, MadeTransfer, StatementFacts } from '../domain/banks/statement';
import { parseBookCurrency } from '../domain/crypto/assets';
import { omitUndefined } from '../domain/defined';
import type { createBankAccountStore } from './bank-accounts';
import { createStatementLines, type OfAccount } from './statement-lines';
import { createStatementRefusals } from './statement-refusals';

export interface StatementDocument extends OfAccount, StatementFacts {
  /** `st_{UUID}`, derived from the account, its number and what it says. */
  _id: string;
  /** SHA-256 of its lines in their order, hex: only such an import is continued. */
  sha256: string;
  /** ISO 8601, ms. */
  imported_at: string;
  /** Null until all lines are stored. */
  completed_at: string | null;
  /** Null while a line of its day is open. */
  closed_at: string | null;
  /** Number of transactions that have stored its lines. */
  batches?: number;
  /** An operator has given up its interrupted import. */
  abandoned_at?: string;
  /** Notification of the lines of a statement that is refused, `filled` once that is imported. */
  behind_gap?: 'open' | 'filled';
}

const LIST_MAX = 1_000;
const NOT_ABANDONED = { abandoned_at: { $exists: false } } as const;

/** Also while its lines are being stored. */
const OPEN = { kind: 'statement', closed_at: null } as const;

export function createStatementStore(db: Db) {
  const statements = db.collection<StatementDocument>('statements');
  const indexStatements = indexBuilder(statements, [
    { key: { bank_account_id: 1, kind: 1, to_day: 1, _id: 1 }, name: 'day' },
    { key: { statement_id: 1 }, name: 'statement_id' },
    { key: { bank_account_id: 1, to_day: 1 }, name: 'open', partialFilterExpression: OPEN },
  ]);
  const { ensureLineIndexes, ...lines } = createStatementLines(db);
  const { ensureRefusalIndexes, ...refusals } = createStatementRefusals(db);
  return {
    ensureIndexes: async (missing?: MissingIndexes) => {
      await indexStatements(missing);
      await ensureLineIndexes(missing);
      await ensureRefusalIndexes(missing);
    },
    get: (_id: string, session?: ClientSession) => statements.findOne({ _id }, { session }),
    insert: (statement: StatementDocument, session: ClientSession) =>
      statements.insertOne(statement, { session }),
    findByBankId: (statement_id: string) =>
      statements
        .find({ statement_id, ...NOT_ABANDONED, behind_gap: { $ne: 'filled' } })
        .limit(2)
        .toArray(),
    /** Counts those that were given up, of which each has an id of its own. */
    countAbandoned: (
      about: Pick<StatementDocument, 'bank_account_id' | 'kind' | 'content'>,
    ): Promise<number> =>
      statements.countDocuments({ ...about, abandoned_at: { $type: 'string' } }),
    /** Lists those with a day in common, which a fresh one is compared with. */
    listOfDays: (
      bank_account_id: string,
      { kind, from_day, to_day, content, statement_id }: StatementFacts,
    ) => {
      const days = { to_day: { $gte: from_day }, from_day: { $lte: to_day } };
      // A day may have thousands.
      const isNamed = { $or: [{ content }, { statement_id }], behind_gap: { $exists: false } };
      const alike = kind === 'statement' ? {} : isNamed;
      return statements
        .find({ bank_account_id, kind, ...days, ...alike, ...NOT_ABANDONED })
        .sort({ to_day: 1, _id: 1 })
        .toArray();
    },
    /** Finds the same statement, or with a state what is announced of it. */
    findSame: (
      { bank_account_id, to_day, content }: StatementDocument,
      behind_gap?: 'open' | 'filled',
      session?: ClientSession,
    ) =>
      statements.findOne(
        {
          ...{ bank_account_id, to_day, content, ...NOT_ABANDONED },
          ...(behind_gap ? { kind: 'notification', behind_gap } : { kind: 'statement' }),
        },
        { session },
      ),
    setBehindGap: (_id: string, behind_gap: 'open' | 'filled', session: ClientSession) =>
      statements.updateOne({ _id }, { $set: { behind_gap } }, { session }),
    /**
     * Makes a batch of lines and the end of their import exclude each other.
     * @returns false when the import was given up, or the statement of what is announced was begun
     */
    addBatch: async (_id: string, session: ClientSession): Promise<boolean> => {
      const filter = { _id, ...NOT_ABANDONED, behind_gap: { $ne: 'filled' as const } };
      const counted = { $inc: { batches: 1 } };
      return (await statements.updateOne(filter, counted, { session })).matchedCount > 0;
    },
    /** @returns false when it is complete */
    abandon: async (_id: string, abandoned_at: string): Promise<boolean> => {
      await statements.updateOne(
        { _id, completed_at: null, ...NOT_ABANDONED },
        { $set: { abandoned_at } },
      );
      return (await statements.findOne({ _id, completed_at: null })) !== null;
    },
    /** Lists the latest day first. */
    list: (
      filter: Partial<Pick<StatementDocument, 'connector' | 'livemode' | 'iban' | 'kind'>>,
      limit: number,
    ) => statements.find(omitUndefined(filter)).sort({ to_day: -1, _id: 1 }).limit(limit).toArray(),
    /** Complete ones, the earliest day first. */
    ofAccount: (bank_account_id: string, filter: { to_day?: string; closed_at?: null } = {}) =>
      statements
        .find({ bank_account_id, kind: 'statement', completed_at: { $type: 'string' }, ...filter })
        .sort({ to_day: 1, _id: 1 })
        .limit(LIST_MAX)
        .toArray(),
    /**
     * Lists the others that are named like the one before it, the newest first: some banks give all
     * statements of a day one id.
     */
    listNamesakes: (
      { _id, bank_account_id }: StatementDocument,
      { statement_id, day: to_day }: { statement_id: string; day: string },
      session: ClientSession,
    ) =>
      statements
        .find(
          {
            ...{ _id: { $ne: _id }, bank_account_id, kind: 'statement' },
            ...{ to_day, statement_id, ...NOT_ABANDONED },
          },
          { session },
        )
        .sort({ imported_at: -1 })
        .toArray(),
    last: (bank_account_id: string) =>
      statements
        .find({ bank_account_id, kind: 'statement', completed_at: { $type: 'string' } })
        .sort({ to_day: -1, _id: -1 })
        .limit(1)
        .next(),
    /** @returns the last day before the first open one, of those with a statement: `YYYY-MM-DD` */
    closedUntil: async (
      bank_account_id: string,
      session?: ClientSession,
    ): Promise<string | null> => {
      const options = { session, projection: { to_day: 1 } } as const;
      const open = await statements.findOne(
        { bank_account_id, ...OPEN, ...NOT_ABANDONED },
        { ...options, sort: { to_day: 1 } },
      );
      const before = open === null ? {} : { to_day: { $lt: open.to_day } };
      const closed = await statements.findOne(
        { bank_account_id, kind: 'statement', ...before, ...NOT_ABANDONED },
        { ...options, sort: { to_day: -1 } },
      );
      return closed?.to_day ?? null;
    },
    /** @returns false when it was complete already */
    complete: async (
      _id: string,
      change: Pick<StatementDocument, 'completed_at' | 'closed_at'>,
      session: ClientSession,
    ): Promise<boolean> => {
      const filter = { _id, completed_at: null, ...NOT_ABANDONED };
      return (await statements.updateOne(filter, { $set: change }, { session })).matchedCount > 0;
    },
    setClosed: (ids: readonly string[], closed_at: string | null) =>
      statements.updateMany({ _id: { $in: [...ids] } }, { $set: { closed_at } }),
    reopen: async (_id: string, session: ClientSession): Promise<void> => {
      const found = await statements.findOne({ _id }, { session });
      if (found === null) return;
      const { bank_account_id, to_day } = found;
      const day = { bank_account_id, kind: 'statement', to_day } as const;
      await statements.updateMany(day, { $set: { closed_at: null } }, { session });
    },
    ...lines,
    ...refusals,
  };
}

/** Statement in the database of the connector that has made it. */
export interface MadeStatementDocument extends MadeStatement {
  /** `{account} {currency} {day}` */
  _id: string;
  /** Whether its lines lead to the balance that the bank has stated. Only otherwise it may change. */
  is_proved: boolean;
  /** ISO 8601, ms. */
  made_at: string;
}

/** Under the reference of its line. */
export type MadeTransferDocument = Omit<MadeTransfer, 'bank_reference'> & { _id: string };

const COLLECTIONS = { statements: 'made_statements', transfers: 'made_transfers' };

export function openMadeStatements(ofConnector: Db): Collection<MadeStatementDocument> {
  return ofConnector.collection<MadeStatementDocument>(COLLECTIONS.statements);
}

export function openMadeTransfers(ofConnector: Db): Collection<MadeTransferDocument> {
  return ofConnector.collection<MadeTransferDocument>(COLLECTIONS.transfers);
}

interface ProofStores {
  bankAccounts: Pick<ReturnType<typeof createBankAccountStore>, 'list'>;
  statements: Pick<ReturnType<typeof createStatementStore>, 'closedUntil'>;
}

export type ReadProof = (connectors: readonly string[], currency: string) => Promise<string | null>;

/**
 * Reads the last day until which every day of every bank account of all connectors in a currency is
 * closed: `YYYY-MM-DD`. Null without a connector, for an asset, and where a connector has no bank
 * account or no closed day. Reads each connector and currency once.
 * @see docs/statements.md#what-is-proved
 */
export function createProof(
  { bankAccounts, statements }: ProofStores,
  livemode: boolean,
  session?: ClientSession,
): ReadProof {
  const known = new Map<string, string | null>();
  const readDay = async (connector: string, currency: string): Promise<string | null> => {
    const accounts = await bankAccounts.list({ connector, livemode, currency }, session);
    const days: (string | null)[] = [];
    for (const { _id } of accounts) days.push(await statements.closedUntil(_id, session));
    return pickFirst(days);
  };
  return async (connectors, currency) => {
    if (parseBookCurrency(currency) !== undefined) return null;
    const days: (string | null)[] = [];
    for (const connector of connectors) {
      const key = `${connector} ${currency}`;
      const day = known.get(key);
      const read = day === undefined ? await readDay(connector, currency) : day;
      known.set(key, read);
      days.push(read);
    }
    return pickFirst(days);
  };
}

function pickFirst(days: readonly (string | null)[]): string | null {
  const sorted = days.flatMap((day) => day ?? []).toSorted();
  return sorted.length === days.length ? (sorted[0] ?? null) : null;
}
