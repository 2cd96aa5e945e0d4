import type { ClientSession, Db } from 'mongodb';
import { isDuplicateKey } from '../base/mongo';
import { indexBuilder } from '../base/mongo-indexes';
import type { AcceptedRequest, EncryptedCustomer } from '../domain/creation';
import type { PaymentOpening } from '../domain/payment/payment';
import { createPayment } from '../domain/wire/payments';

/** @see docs/api.md#idempotency-key */
export const KEY_LIFETIME_MS = 24 * 60 * 60 * 1_000;

/** Lifetime of a record whose resource is not written: it holds the request. */
const OPEN_LIFETIME_MS = 30 * KEY_LIFETIME_MS;

/**
 * Counts from the write of the resource: a client that repeats its request through a long outage
 * must find that resource, not create a second one.
 */
const EXPIRES_AT = { $add: ['$$NOW', KEY_LIFETIME_MS] };

/** A key is unique per account, environment and operation. */
export interface RecordKey {
  account_id: string;
  livemode: boolean;
  operation: string;
  key: string;
}

/** Determines the id of the resource before anything else happens. */
export interface IdempotencyRecord extends RecordKey {
  _id: string;
  fingerprint: string;
  resource_id: string;
  request: AcceptedRequest | null;
  request_id: string;
  status: number | null;
  body: string | null;
  /** Facts of the first response that may change later; stored with the resource. */
  opening?: PaymentOpening;
  created_at: Date;
  /** 30 days after creation; 24 hours after the write of the resource. */
  expires_at: Date;
}

/** The payer is absent once the payment is written. */
interface OpenPayer {
  _id: string;
  resource_id: string;
  customer?: EncryptedCustomer;
}

export type NewIdempotencyRecord = RecordKey &
  Pick<IdempotencyRecord, 'fingerprint' | 'resource_id' | 'request' | 'request_id'>;

function recordId({ account_id, livemode, operation, key }: RecordKey): string {
  return `${account_id}:${livemode ? 'live' : 'sandbox'}:${operation}:${key}`;
}

export const REBUILT = 'rebuilt';
/** Fingerprint of a record that is rebuilt without its key. It matches no request. */
export const KEY_LOST = '';

export function rebuiltRecordKey(
  { account_id, livemode }: Pick<RecordKey, 'account_id' | 'livemode'>,
  key: string,
): RecordKey {
  return { account_id, livemode, operation: REBUILT, key };
}

export function createIdempotencyStore(db: Db) {
  const records = db.collection<IdempotencyRecord>('idempotency_records');
  return {
    ensureIndexes: indexBuilder(records, [
      { key: { resource_id: 1 }, name: 'resource', unique: true },
      { key: { expires_at: 1 }, name: 'expiry', expireAfterSeconds: 0 },
    ]),
    /**
     * Ignores an expired record even before its deletion.
     * @param keyHash name of a rebuilt record, which has only the hash of its key
     */
    find: async (key: RecordKey, now: Date, keyHash: string): Promise<IdempotencyRecord | null> => {
      const ids = listIds(key, keyHash);
      const existing = await records.find({ _id: { $in: ids } }).toArray();
      return existing.find((record) => !isExpired(record, now)) ?? null;
    },
    /**
     * Creates the record, or returns the existing one; an expired one is replaced.
     * @param keyHash name of a rebuilt record of the same key
     */
    reserveKey: async (newRecord: NewIdempotencyRecord, now: Date, keyHash?: string) => {
      const document: IdempotencyRecord = {
        _id: recordId(newRecord),
        ...newRecord,
        status: null,
        body: null,
        created_at: now,
        expires_at: new Date(now.getTime() + OPEN_LIFETIME_MS),
      };
      const ids = { _id: { $in: listIds(newRecord, keyHash) } };
      while (true) {
        try {
          // Finds and inserts in one command, which a new key costs anyway.
          const result = await records.updateOne(ids, { $setOnInsert: document }, { upsert: true });
          if (result.upsertedCount === 1) return document;
        } catch (error) {
          // Another call inserted it at the same time.
          if (!isDuplicateKey(error, '_id_')) throw error;
        }
        const existing = await records.find(ids).toArray();
        const first = existing.find((record) => !isExpired(record, now));
        if (first !== undefined) return first;
        for (const { _id, resource_id } of existing) {
          await records.deleteOne({ _id, resource_id, expires_at: { $lte: now } });
        }
      }
    },
    /** @returns the stored response, which is sent */
    complete: async ({ _id, resource_id }: IdempotencyRecord, status: number, body: string) => {
      const response = {
        status: { $ifNull: ['$status', status] },
        body: { $ifNull: ['$body', { $literal: body }] },
      };
      const stored = await records.findOneAndUpdate(
        { _id, resource_id },
        [{ $set: { ...response, request: null, expires_at: EXPIRES_AT } }],
        { returnDocument: 'after' },
      );
      return { status: stored?.status ?? status, body: stored?.body ?? body };
    },
    /** Whether a resource was rebuilt since then without its key. No index: read after a restore alone. */
    hasLostKeys: async (since: Date): Promise<boolean> => {
      const created_at = { $gte: since };
      const lost = { operation: REBUILT, fingerprint: KEY_LOST, created_at };
      return (await records.findOne(lost)) !== null;
    },
    markWritten: (resource_id: string, session?: ClientSession) =>
      records.updateOne(
        { resource_id, request: { $ne: null } },
        [{ $set: { request: null, expires_at: EXPIRES_AT } }],
        { session },
      ),
    /**
     * Reads payers of payments that are accepted and not yet written.
     * @param after id; '' for the first page
     */
    listPayers: async (
      { account_id, livemode }: Pick<RecordKey, 'account_id' | 'livemode'>,
      after: string,
      limit: number,
    ) => {
      const first = recordId({ account_id, livemode, operation: createPayment.operation, key: '' });
      return await records
        .find({ _id: { $gt: after || first, $lt: `${first.slice(0, -1)};` } })
        .sort({ _id: 1 })
        .limit(limit)
        .project<OpenPayer>({ resource_id: 1, customer: '$request.stored.customer' })
        .toArray();
    },
    reencryptPayer: (resource_id: string, before: string, ciphertext: string) =>
      records.updateOne(
        { resource_id, 'request.stored.customer.ciphertext': before },
        { $set: { 'request.stored.customer.ciphertext': ciphertext } },
      ),
    /** A repeated request then returns the resource as it is. */
    eraseAnswers: (resource_ids: string[], session: ClientSession) =>
      records.updateMany(
        { resource_id: { $in: resource_ids } },
        { $set: { body: null } },
        { session },
      ),
    forResource: (resource_id: string) => records.findOne({ resource_id }),
    /**
     * Removes the request in the transaction that writes the resource; the key's 24 hours begin.
     * @param opening facts from which the first response is built again
     * @returns the request; null when it was removed or released before
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
    /** Releases the key of a refusal, which is not stored. A written resource keeps its record. */
    release: (resource_id: string, session?: ClientSession) =>
      records.deleteOne({ resource_id, request: { $ne: null } }, { session }),
  };
}

function isExpired({ expires_at }: IdempotencyRecord, now: Date): boolean {
  return expires_at <= now;
}

function listIds(key: RecordKey, keyHash: string | undefined): string[] {
  const keys = keyHash === undefined ? [key] : [key, rebuiltRecordKey(key, keyHash)];
  return keys.map(recordId);
}
