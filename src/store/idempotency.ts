import type { ClientSession, Collection, Db, Filter } from 'mongodb';
import { isDuplicateKey } from '../base/mongo';
import { type MissingIndexes, makeIndexes } from '../base/mongo-indexes';
import type { AcceptedRequest } from '../domain/creation';
import type { PaymentOpening } from '../domain/payment/workflow';

/** Life of a key: 24 hours. @see docs/api.md#idempotency-key */
export const KEY_LIFETIME_MS = 24 * 60 * 60 * 1_000;

/** Longest life of a claim whose resource is not written: it holds what the request said. */
const OPEN_LIFETIME_MS = 30 * KEY_LIFETIME_MS;

/**
 * End of a key's life, counted from when its resource was written: a client that has repeated its
 * request through a long outage must find the resource that was made at last, not make a second.
 */
const EXPIRES_AT = { $add: ['$$NOW', KEY_LIFETIME_MS] };

/** Identity of a claim: a key counts per account, environment and operation. */
export interface RecordKey {
  account_id: string;
  livemode: boolean;
  operation: string;
  key: string;
}

/** Use of an idempotency key. It fixes the id of the resource before anything else happens. */
export interface IdempotencyRecord extends RecordKey {
  _id: string;
  /** Keyed hash of the canonical body. */
  fingerprint: string;
  resource_id: string;
  /** Parsed request, until the resource is written. */
  request: AcceptedRequest | null;
  request_id: string;
  status: number | null;
  /** Answer as it was first sent. */
  body: string | null;
  /** Facts of the first answer, kept by the write of the resource; the rest of it never changes. */
  opening?: PaymentOpening;
  created_at: Date;
  /** 30 days after it was made, and once the resource is written 24 hours after that. */
  expires_at: Date;
}

export type NewIdempotencyRecord = RecordKey &
  Pick<IdempotencyRecord, 'fingerprint' | 'resource_id' | 'request' | 'request_id'>;

function recordId({ account_id, livemode, operation, key }: RecordKey): string {
  return `${account_id}:${livemode ? 'live' : 'sandbox'}:${operation}:${key}`;
}

/** Operation of claims that were rebuilt: no request is made under it. */
export const REBUILT = 'rebuilt';

/** Key of a claim that is rebuilt from a workflow. */
export function rebuiltRecordKey(
  { account_id, livemode }: Pick<RecordKey, 'account_id' | 'livemode'>,
  key: string,
): RecordKey {
  return { account_id, livemode, operation: REBUILT, key };
}

export function createIdempotencyStore(db: Db) {
  const records: Collection<IdempotencyRecord> = db.collection<IdempotencyRecord>('idempotency');
  return {
    ensureIndexes: (missing?: MissingIndexes) =>
      makeIndexes(
        records,
        [
          { key: { resource_id: 1 }, name: 'resource', unique: true },
          { key: { expires_at: 1 }, name: 'expiry', expireAfterSeconds: 0 },
        ],
        missing,
      ),
    /**
     * Finds the claim under a key; an expired one does not count, even before it is deleted.
     * @param keyHash name of a record that was rebuilt, which stores only the hash of its key
     */
    find: async (key: RecordKey, now: Date, keyHash: string): Promise<IdempotencyRecord | null> => {
      const ids = listIds(key, keyHash);
      const existing = await records.find({ _id: { $in: ids } }).toArray();
      return existing.find((record) => !isExpired(record, now)) ?? null;
    },
    /**
     * Makes the claim, or gives the one that the key has; an expired one is replaced.
     * @param keyHash name of a record that was rebuilt under the same key
     */
    reserveKey: (newRecord: NewIdempotencyRecord, now: Date, keyHash?: string) =>
      reserveKey(records, newRecord, now, listIds(newRecord, keyHash)),
    /** Keeps the first answer, and gives it, since it is the one to send. */
    complete: (record: IdempotencyRecord, status: number, body: string) =>
      complete(records, record, status, body),
    /** Notes that the resource is written: the request goes, and the key's 24 hours begin. */
    markWritten: (resource_id: string, session?: ClientSession) =>
      records.updateOne(
        { resource_id, request: { $ne: null } },
        [{ $set: { request: null, expires_at: EXPIRES_AT } }],
        { session },
      ),
    forResource: (resource_id: string) => records.findOne({ resource_id }),
    /**
     * Empties the claim in the transaction that writes its resource; the key's 24 hours begin.
     * @param opening facts by which the first answer can be given again
     * @returns the request that it held; null when it was emptied or released already
     */
    clearRequest: async (
      resource_id: string,
      session: ClientSession,
      opening?: PaymentOpening,
    ): Promise<AcceptedRequest | null> => {
      const openingFields = opening === undefined ? {} : { opening: { $literal: opening } };
      const before = await records.findOneAndUpdate(
        { resource_id, request: { $ne: null } },
        [{ $set: { request: null, expires_at: EXPIRES_AT, ...openingFields } }],
        { session, returnDocument: 'before' },
      );
      return before?.request ?? null;
    },
    /**
     * Frees the key of a resource that was refused. Refusals are not stored. A resource
     * that was written after all keeps its claim.
     */
    release: (resource_id: string, session?: ClientSession) =>
      records.deleteOne({ resource_id, request: { $ne: null } }, { session }),
  };
}

/** Lists the ids that the record of a key may have. */
function listIds(key: RecordKey, keyHash: string | undefined): string[] {
  const keys = keyHash === undefined ? [key] : [key, rebuiltRecordKey(key, keyHash)];
  return keys.map(recordId);
}

function isExpired(record: IdempotencyRecord, now: Date): boolean {
  return record.expires_at <= now;
}

/** Looks and inserts in one command, so that a new key costs a single one. */
async function reserveKey(
  records: Collection<IdempotencyRecord>,
  newRecord: NewIdempotencyRecord,
  now: Date,
  ids: string[],
): Promise<IdempotencyRecord> {
  const document: IdempotencyRecord = {
    _id: recordId(newRecord),
    ...newRecord,
    status: null,
    body: null,
    created_at: now,
    expires_at: new Date(now.getTime() + OPEN_LIFETIME_MS),
  };
  while (true) {
    if (await insertIfAbsent(records, document, ids)) return document;
    const existing = await records.find({ _id: { $in: ids } }).toArray();
    const first = existing.find((earlier) => !isExpired(earlier, now));
    if (first !== undefined) return first;
    for (const { _id, resource_id } of existing) {
      const stale: Filter<IdempotencyRecord> = { _id, resource_id };
      await records.deleteOne({ ...stale, expires_at: { $lte: now } });
    }
  }
}

/** False when one of them is there, or another call has inserted it at the same moment. */
async function insertIfAbsent(
  records: Collection<IdempotencyRecord>,
  document: IdempotencyRecord,
  ids: string[],
): Promise<boolean> {
  try {
    const options = { upsert: true };
    const filter = { _id: { $in: ids } };
    return (
      (await records.updateOne(filter, { $setOnInsert: document }, options)).upsertedCount === 1
    );
  } catch (error) {
    if (!isDuplicateKey(error, '_id_')) throw error;
    return false;
  }
}

async function complete(
  records: Collection<IdempotencyRecord>,
  record: IdempotencyRecord,
  status: number,
  body: string,
): Promise<{ status: number; body: string }> {
  const { _id, resource_id } = record;
  const stored = await records.findOneAndUpdate(
    { _id, resource_id },
    [
      {
        $set: {
          status: { $ifNull: ['$status', status] },
          body: { $ifNull: ['$body', { $literal: body }] },
          request: null,
          expires_at: EXPIRES_AT,
        },
      },
    ],
    { returnDocument: 'after' },
  );
  return { status: stored?.status ?? status, body: stored?.body ?? body };
}
