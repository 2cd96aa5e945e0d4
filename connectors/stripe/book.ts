import type { Db } from 'mongodb';

/** As long as the kit keeps its records of instructions. */
const RETENTION_S = 400 * 86_400;

/** Instruction that may have reached Stripe, written before it is sent, without personal data. */
export interface Sent {
  /** Instruction id, which is also the first idempotency key. */
  _id: string;
  /** Idempotency key of the next request. */
  key: string;
  /** Begin of the first attempt, from which Stripe keeps the key for 24 hours. */
  begun_at: Date;
  /** Begin of the last attempt. */
  tried_at: Date;
  /** Charge or PaymentIntent of a refund. */
  refunded: Refunded | null;
  /** Object that Stripe has made for it; null until it is known. */
  object: string | null;
  /** Whether the service has closed the session: what Stripe says of its end is no news. */
  closing?: boolean;
}

export type Refunded = { charge: string } | { payment_intent: string };

export type Note = Partial<Pick<Sent, 'key' | 'object' | 'closing'>>;

export type Book = ReturnType<typeof createBook>;

/** Stores what was sent to Stripe, so that it is sent once and found again. */
export function createBook(db: Db, now: () => Date) {
  const sent = db.collection<Sent>('stripe_sent');
  return {
    ensureIndexes: () =>
      sent.createIndex({ begun_at: 1 }, { name: 'kept', expireAfterSeconds: RETENTION_S }),
    get: (_id: string) => sent.findOne({ _id }),
    /** Notes an attempt. @returns what the first one has noted */
    begin: async (_id: string, refunded: Refunded | null): Promise<Sent> => {
      const tried_at = now();
      const first = { key: _id, begun_at: tried_at, refunded, object: null };
      const change = { $set: { tried_at }, $setOnInsert: first };
      const options = { upsert: true, returnDocument: 'after' } as const;
      const record = await sent.findOneAndUpdate({ _id }, change, options);
      if (record === null) throw new Error('The book has not stored the instruction.');
      return record;
    },
    note: async (_id: string, change: Note): Promise<void> => {
      await sent.updateOne({ _id }, { $set: change });
    },
  };
}
