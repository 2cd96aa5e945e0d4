import { type Db, MongoBulkWriteError } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';
import type { RequestOutcome } from '../domain/events/event';
import { type ListFilter, listIndexes, listNewest } from './list';

/** A write, or an error; deleted after a week. @see docs/api.md#requests */
export interface RequestDocument {
  /** The `Request-Id`. */
  _id: string;
  account_id: string;
  livemode: boolean;
  /** @see src/domain/cursor.ts */
  position: string;
  method: string;
  /** Redacted, without the query. */
  path: string;
  status: number;
  outcome: RequestOutcome;
  code: string | null;
  idempotency_key: string | null;
  key_id: string;
  duration_ms: number;
  created_at: string;
  /** Redacted JSON texts. */
  request_body: string | null;
  response_body: string | null;
  expires_at: Date;
}

export interface RequestFilter extends ListFilter {
  outcome?: RequestOutcome | undefined;
}

/** MongoDB error code. */
const DUPLICATE_KEY = 11_000;

export function createRequestStore(db: Db) {
  const requests = db.collection<RequestDocument>('requests');
  return {
    ensureIndexes: indexBuilder(requests, [
      ...listIndexes('outcome'),
      { key: { expires_at: 1 }, name: 'expired', expireAfterSeconds: 0 },
    ]),
    /** Skips stored ones, so that a batch can be repeated. */
    insertAll: async (documents: readonly RequestDocument[]): Promise<void> => {
      try {
        await requests.insertMany([...documents], { ordered: false });
      } catch (error) {
        if (!(error instanceof MongoBulkWriteError)) throw error;
        const codes = [error.writeErrors].flat().map(({ code }) => code);
        if (codes.some((code) => code !== DUPLICATE_KEY)) throw error;
      }
    },
    find: (id: string, account_id: string, livemode: boolean) =>
      requests.findOne({ _id: id, account_id, livemode }),
    list: (filter: RequestFilter) => listNewest<RequestDocument>(requests, filter),
  };
}
