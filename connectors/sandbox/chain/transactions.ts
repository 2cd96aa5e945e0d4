import type { ClientSession, Collection, Db } from 'mongodb';
import type { CryptoResource } from '../../../src/domain/banks/callback';
import type { Network } from '../../../src/domain/crypto/assets';
import type { BankClockAdvance } from '../../contract/clock';
import { bringForward, type TimeReader } from '../clock';
import type { Step } from './plan';

/** After it another process retries the row. */
const LEASE_MS = 5_000;
const BACKOFF_MS_MAX = 30_000;

export interface Subject {
  resource: CryptoResource;
  resource_id: string;
}

export interface ChainTransaction extends Subject {
  _id: string;
  network: Network;
  asset: string;
  /** Smallest units. */
  amount: string;
  listed: boolean;
  /** Account time of the first report. */
  seen_at: Date | null;
  steps: Step[];
  done: number;
  due_at: Date | null;
  attempts: number;
  last_error: string | null;
  /** Clock offset of the last change of `due_at`, in ms. */
  clock_ms?: number;
}

type NewTransaction = Omit<
  ChainTransaction,
  'seen_at' | 'done' | 'due_at' | 'attempts' | 'last_error'
>;

export type TransactionStore = ReturnType<typeof createTransactionStore>;

export function createTransactionStore(db: Db, now: () => Date, readTime: TimeReader) {
  const transactions: Collection<ChainTransaction> = db.collection('chain_transactions');
  const later = (ms: number) => new Date(now().getTime() + ms);
  const dueAfter = (step: Step | undefined) => (step === undefined ? null : later(step.after_ms));
  return {
    ensureIndexes: () =>
      transactions.createIndexes([
        { key: { due_at: 1 }, name: 'due', partialFilterExpression: { due_at: { $type: 'date' } } },
        { key: { resource_id: 1 }, name: 'resource' },
      ]),
    get: (_id: string) => transactions.findOne({ _id }),
    /** A repeat adds nothing. */
    add: async (transaction: NewTransaction, session?: ClientSession): Promise<void> => {
      const { _id, ...fields } = transaction;
      const due_at = dueAfter(fields.steps[0]);
      const first = { ...fields, seen_at: null, done: 0, due_at, attempts: 0, last_error: null };
      await transactions.updateOne({ _id }, { $setOnInsert: first }, { upsert: true, session });
    },
    /** Others leave leased transactions alone until the lease ends. */
    lease: async (limit: number): Promise<ChainTransaction[]> => {
      const due = await transactions
        .find({ due_at: { $type: 'date', $lte: now() } })
        .sort({ due_at: 1 })
        .limit(limit)
        .toArray();
      const results = await Promise.all(
        due.map(async ({ _id, due_at, seen_at, ...subject }) => {
          // The time of the first attempt, so that every report is the same.
          const seen = seen_at ?? (await readTime(subject));
          return await transactions.findOneAndUpdate(
            { _id, due_at },
            [
              {
                $set: {
                  due_at: later(LEASE_MS),
                  attempts: { $add: ['$attempts', 1] },
                  seen_at: { $ifNull: ['$seen_at', seen] },
                },
              },
            ],
            { returnDocument: 'after' },
          );
        }),
      );
      return results.filter((transaction) => transaction !== null);
    },
    proceed: ({ _id, done, steps }: ChainTransaction) =>
      transactions.updateOne(
        { _id, done },
        {
          $set: {
            done: done + 1,
            due_at: dueAfter(steps[done + 1]),
            attempts: 0,
            last_error: null,
          },
        },
      ),
    drop: ({ _id, done }: ChainTransaction, last_error: string) =>
      transactions.updateOne({ _id, done }, { $set: { due_at: null, last_error } }),
    retry: ({ _id, done, attempts }: ChainTransaction, last_error: string) => {
      const due_at = later(Math.min(250 * 2 ** Math.min(attempts, 10), BACKOFF_MS_MAX));
      return transactions.updateOne({ _id, done }, { $set: { due_at, last_error } });
    },
    /** Time before which every transaction has been reported. */
    reportedUntil: async (): Promise<Date> => {
      const at = now();
      // One that is leased now was due up to a lease earlier.
      const [waiting] = await transactions
        .find({ done: 0, due_at: { $type: 'date', $lte: later(LEASE_MS) } })
        .sort({ due_at: 1 })
        .limit(1)
        .toArray();
      const due = waiting?.due_at ?? later(LEASE_MS);
      return new Date(Math.min(at.getTime(), due.getTime() - LEASE_MS));
    },
    listPending: (limit: number) =>
      transactions
        .find({ due_at: { $type: 'date' } })
        .sort({ due_at: 1 })
        .limit(limit)
        .toArray(),
    /** Applies once for each advance of the clock. */
    bringForward: (ids: string[], advance: BankClockAdvance) =>
      transactions.updateMany({ _id: { $in: ids }, due_at: { $type: 'date' } }, [
        bringForward(advance),
      ]),
    forResource: (resource_id: string) => transactions.find({ resource_id }).toArray(),
  };
}
