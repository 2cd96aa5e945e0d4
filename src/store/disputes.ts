import type { Db } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';
import { DISPUTE_IN_FLIGHT, type DisputeStatus } from '../domain/dispute/dispute';
import { OWNER, resourceIndexes } from './list';
import { PAYMENT } from './refunds';
import { type ResourceDocument, resourceStore } from './resource';

/** @see docs/api.md#disputes */
export interface DisputeDocument extends ResourceDocument<DisputeStatus> {
  payment_id: string;
  /** The bank's for the dispute, or id of the act that opened it. */
  name: string;
  /** Minor units that it took, without what came back. */
  amount: number;
  /** Minor units, as `amount`. */
  fee: number;
  /** The scheme's code. */
  reason: string | null;
  evidence_due_at: string | null;
  evidence_submitted_at: string | null;
  closed_at: string | null;
}

export function createDisputeStore(db: Db) {
  const disputes = db.collection<DisputeDocument>('disputes');
  return {
    ...resourceStore<DisputeDocument, 'payment_id' | 'status'>(disputes, DISPUTE_IN_FLIGHT),
    ensureIndexes: indexBuilder(disputes, [
      ...resourceIndexes(DISPUTE_IN_FLIGHT, 'status'),
      { key: { ...OWNER, payment_id: 1, position: -1 }, name: 'payment_position' },
      PAYMENT,
      { key: { payment_id: 1, name: 1 }, name: 'name', unique: true },
    ]),
  };
}
