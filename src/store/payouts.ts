import type { ClientSession, Db } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';
import type { HeldReturn } from '../domain/payout/held-return';
import {
  PAYOUT_IN_FLIGHT,
  type PayoutAttention,
  type PayoutStatus,
  type Return,
} from '../domain/payout/payout';
import type { SentAgain } from '../domain/sent-again';
import type { SentHeld } from '../domain/sent-held';
import { type ResourceDocument, resourceStore } from './resource';
import { resourceIndexes } from './resource-indexes';
import { sentHeldWrites } from './sent-held';

/** @see docs/api.md#payouts */
export interface PayoutDocument extends ResourceDocument<PayoutStatus, PayoutAttention> {
  /** Minor units. */
  amount: number;
  /** Minor units, in addition to the amount. */
  fee: number;
  recipient_id: string;
  balance_account: string;
  reference: string | null;
  metadata: string;
  returned: Return | null;
  /** Minor units, where an operator booked a smaller amount. */
  returned_amount?: number | null;
  /** Time of the capture; null while the money is only reserved. */
  sent_at: string | null;
  completed_at: string | null;
  /** Counts against the daily limit. */
  limited?: true;
  due_at: string;
  /** Payments beyond the one that was instructed. */
  sent_again?: SentAgain[];
  returns_held?: HeldReturn[];
  sent_held?: SentHeld[];
}

const RETURNABLE = ['sent', 'completed'] as const;

export type PayoutStore = ReturnType<typeof createPayoutStore>;

export function createPayoutStore(db: Db) {
  const payouts = db.collection<PayoutDocument>('payouts');
  return {
    ...resourceStore<PayoutDocument, 'status' | 'method' | 'reference'>(payouts, PAYOUT_IN_FLIGHT),
    ...sentHeldWrites(payouts),
    recordSentAgain: async (id: string, sent: SentAgain, session: ClientSession) => {
      const filter = { _id: id, 'sent_again.id': { $ne: sent.id } };
      const update = { $push: { sent_again: sent } };
      return (await payouts.updateOne(filter, update, { session })).matchedCount === 1;
    },
    recordReturnHeld: async (id: string, held: HeldReturn, session: ClientSession) => {
      const filter = { _id: id, 'returns_held.id': { $ne: held.id } };
      const update = { $push: { returns_held: held } };
      return (await payouts.updateOne(filter, update, { session })).matchedCount === 1;
    },
    /** Notes once that the entry of a held return is reversed, while it is in suspense. */
    reverseReturnHeld: async (
      id: string,
      { id: held, is_return }: Pick<HeldReturn, 'id' | 'is_return'>,
      reversed_at: string,
      session: ClientSession,
    ): Promise<boolean> => {
      const filter = {
        ...{ _id: id, ...(is_return ? { status: { $in: [...RETURNABLE] } } : {}) },
        returns_held: { $elemMatch: { id: held, reversed_at: { $exists: false } } },
      };
      const update = { $set: { 'returns_held.$.reversed_at': reversed_at } };
      return (await payouts.updateOne(filter, update, { session })).matchedCount === 1;
    },
    lastTo: (recipient_id: string) =>
      payouts.findOne({ recipient_id }, { sort: { created_at: -1 } }),
    hasInFlight: async (recipient_id: string): Promise<boolean> => {
      const status = { $in: [...PAYOUT_IN_FLIGHT] };
      return (await payouts.findOne({ recipient_id, status })) !== null;
    },
    ensureIndexes: indexBuilder(payouts, [
      ...resourceIndexes(PAYOUT_IN_FLIGHT, 'status', 'method', 'reference'),
      { key: { recipient_id: 1, created_at: -1 }, name: 'recipient' },
    ]),
  };
}
