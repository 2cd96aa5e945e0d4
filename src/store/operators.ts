import type { ClientSession, Db } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';
import type { OperatorRole } from '../domain/account/operator';

export interface OperatorDocument {
  _id: string;
  name: string;
  role: OperatorRole;
  hash: string;
  /** Verifies the operator's lines of the audit log. */
  public_key: string;
  /** Operator who requested the key; absent of the first two. */
  created_by?: string;
  /** Place among the first two, which nobody approved. */
  first?: 1 | 2;
  created_at: string;
  revoked_at: string | null;
}

const OPERATORS_MAX = 1_000;

export function createOperatorStore(db: Db) {
  const operators = db.collection<OperatorDocument>('operators');
  return {
    ensureIndexes: indexBuilder(operators, [
      { key: { hash: 1 }, name: 'hash', unique: true },
      // Two at once cannot have the same place.
      { key: { first: 1 }, name: 'first', unique: true, sparse: true },
    ]),
    insert: (operator: OperatorDocument, session?: ClientSession) =>
      operators.insertOne(operator, { session }),
    listFirst: () => operators.find({ first: { $in: [1, 2] } }).toArray(),
    /** Never cached, so that a revocation takes effect at once. */
    byHash: (hash: string) => operators.findOne({ hash }),
    list: () => operators.find().sort({ created_at: 1, _id: 1 }).limit(OPERATORS_MAX).toArray(),
    /** @returns the key as it was before; null when it was revoked already */
    revoke: (id: string, now: string, session?: ClientSession) =>
      operators.findOneAndUpdate(
        { _id: id },
        [{ $set: { revoked_at: { $ifNull: ['$revoked_at', now] } } }],
        { returnDocument: 'before', session },
      ),
  };
}
