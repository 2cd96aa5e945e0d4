import type { Collection, Db } from 'mongodb';
import type { RefundAttention, RefundStatus } from '../domain/refund';
import {
  type ListFilter,
  listIndexes,
  OWNER,
  type ResourceDocument,
  resourceStore,
} from './resource';

/** The refund as it stands: wire fields in wire names (spec §2.2), and what only we see. */
export interface RefundDocument extends ResourceDocument<RefundStatus, RefundAttention> {
  payment_id: string;
  reason: string | null;
  settled_at: string | null;
  /** The bank's name for the payment, by which it finds what is to be sent back. */
  payment_bank_reference: string | null;
  /** ISO 8601; past it operators are told. */
  due_at: string;
}

export interface RefundFilter extends ListFilter {
  payment_id?: string | undefined;
  status?: string | undefined;
}

export type RefundStore = ReturnType<typeof createRefundStore>;

export function createRefundStore(db: Db) {
  const refunds: Collection<RefundDocument> = db.collection<RefundDocument>('refunds');
  return {
    ...resourceStore<RefundDocument, RefundFilter>(refunds),
    ensureIndexes: () =>
      refunds.createIndexes([
        ...listIndexes('status'),
        { key: { ...OWNER, payment_id: 1, position: -1 }, name: 'payment_position' },
      ]),
  };
}
