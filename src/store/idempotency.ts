import type { ClientSession, Collection, Db, Filter } from 'mongodb';
import type { ClaimedRequest } from '../domain/creation';
import type { PaymentOpening } from '../domain/payment-workflow';
import { isDuplicateKey } from '../mongo';
import { type IndexWork, makeIndexes } from '../mongo-indexes';

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
export interface ClaimKey {
  account_id: string;
  livemode: boolean;
  operation: string;
  key: string;
}

/** Use of an idempotency key. It fixes the id of the resource before anything else happens. */
export interface ClaimDocument extends ClaimKey {
  _id: string;
  /** Keyed hash of the canonical body. */
  fingerprint: string;
  resource_id: string;
  /** Parsed request, until the resource is written. */
  request: ClaimedRequest | null;
  request_id: string;
  status: number | null;
  /** Answer as it was first sent. */
  body: string | null;
  /** Facts of the first answer, kept by the write of the resource; the rest of it never changes. */
  opening?: PaymentOpening;
  created_at: Date;
  /** 30 days after it was made, and once the resource is written 24 hours after that. */
  expires_at?: Date;
}

export type NewClaim = ClaimKey &
  Pick<ClaimDocument, 'fingerprint' | 'resource_id' | 'request' | 'request_id'>;

export type IdempotencyStore = ReturnType<typeof createIdempotencyStore>;

function claimId({ account_id, livemode, operation, key }: ClaimKey): string {
  return `${account_id}:${livemode ? 'live' : 'sandbox'}:${operation}:${key}`;
}

/** Operation of claims that were rebuilt: no request is made under it. */
export const REBUILT = 'rebuilt';

/** Key of a claim that is rebuilt from a workflow. */
export function rebuiltClaim(
  { account_id, livemode }: Pick<ClaimKey, 'account_id' | 'livemode'>,
  key: string,
): ClaimKey {
  return { account_id, livemode, operation: REBUILT, key };
}

export function createIdempotencyStore(db: Db) {
  const claims: Collection<ClaimDocument> = db.collection<ClaimDocument>('idempotency');
  return {
    ensureIndexes: (work?: IndexWork) =>
      makeIndexes(
        claims,
        [
          { key: { resource_id: 1 }, name: 'resource', unique: true },
          { key: { expires_at: 1 }, name: 'expiry', expireAfterSeconds: 0 },
        ],
        work,
      ),
    /**
     * Finds the claim under a key; an expired one does not count, even before it is deleted.
     * @param keyHashes names of a claim that was rebuilt, since its key is known by its hash alone
     */
    find: async (
      key: ClaimKey,
      now: Date,
      keyHashes: readonly string[],
    ): Promise<ClaimDocument | null> => {
      const ids = idsOf(key, keyHashes);
      const found = await claims.find({ _id: { $in: ids } }).toArray();
      return found.find((claim) => !isExpired(claim, now)) ?? null;
    },
    /**
     * Makes the claim, or gives the one that the key has; an expired one is replaced.
     * @param keyHashes names of a claim that was rebuilt, which has the key too
     */
    claim: (fresh: NewClaim, now: Date, keyHashes: readonly string[] = []) =>
      claim(claims, fresh, now, idsOf(fresh, keyHashes)),
    /** Keeps the first answer, and gives it, since it is the one to send. */
    complete: (open: ClaimDocument, status: number, body: string) =>
      complete(claims, open, status, body),
    /** Notes that the resource is written: the request goes, and the key's 24 hours begin. */
    markWritten: (resource_id: string, session?: ClientSession) =>
      claims.updateOne(
        { resource_id, request: { $ne: null } },
        [{ $set: { request: null, expires_at: EXPIRES_AT } }],
        { session },
      ),
    /** Sets the end of open claims from before they had one. */
    limitOpen: () =>
      claims.updateMany({ expires_at: { $exists: false } }, [
        { $set: { expires_at: { $add: ['$created_at', OPEN_LIFETIME_MS] } } },
      ]),
    /**
     * Counts payments that were accepted and are not written yet, by the key of their links.
     * @param kid undefined for the first key
     */
    linkedBy: (kid: string | undefined): Promise<number> =>
      claims.countDocuments({
        $or: ['stored', 'crypto_payment'].map((request) => ({
          [`request.${request}`]: { $exists: true },
          [`request.${request}.token_kid`]: kid ?? { $exists: false },
        })),
      }),
    /**
     * Counts idempotency keys that are in use, by the key of their fingerprints.
     * @param kid undefined for the first key, whose name a fingerprint does not say
     */
    markedBy: (kid: string | undefined, now: Date): Promise<number> =>
      claims.countDocuments({
        expires_at: { $gt: now },
        fingerprint: kid === undefined ? /^[^:]+$/ : { $gte: `${kid}:`, $lt: `${kid};` },
      }),
    forResource: (resource_id: string) => claims.findOne({ resource_id }),
    /**
     * Empties the claim in the transaction that writes its resource; the key's 24 hours begin.
     * @param opening facts by which the first answer can be given again
     * @returns the request that it held; null when it was emptied or released already
     */
    emptyClaim: async (
      resource_id: string,
      session: ClientSession,
      opening?: PaymentOpening,
    ): Promise<ClaimedRequest | null> => {
      const kept = opening === undefined ? {} : { opening: { $literal: opening } };
      const before = await claims.findOneAndUpdate(
        { resource_id, request: { $ne: null } },
        [{ $set: { request: null, expires_at: EXPIRES_AT, ...kept } }],
        { session, returnDocument: 'before' },
      );
      return before?.request ?? null;
    },
    /**
     * Empties claims in the transaction that writes all of their resources.
     * @returns the requests by the ids of their resources; without those that were empty already
     */
    emptyClaims: async (
      resource_ids: readonly string[],
      session: ClientSession,
    ): Promise<Map<string, ClaimedRequest>> => {
      const held = { resource_id: { $in: [...resource_ids] }, request: { $ne: null } };
      const found = await claims.find(held, { session }).toArray();
      // Emptied meanwhile, one would be a write conflict: the transaction begins again.
      const emptied = [{ $set: { request: null, expires_at: EXPIRES_AT } }];
      await claims.updateMany(held, emptied, { session });
      return new Map(
        found.flatMap(({ resource_id, request }) =>
          request === null ? [] : [[resource_id, request] as const],
        ),
      );
    },
    /**
     * Frees the key of a resource that was refused. Refusals are not stored. A resource
     * that was written after all keeps its claim.
     */
    release: (resource_id: string, session?: ClientSession) =>
      claims.deleteOne({ resource_id, request: { $ne: null } }, { session }),
  };
}

/** Names that the claim under a key may have. */
function idsOf(key: ClaimKey, keyHashes: readonly string[]): string[] {
  return [key, ...keyHashes.map((hash) => rebuiltClaim(key, hash))].map(claimId);
}

function isExpired(claim: ClaimDocument, now: Date): boolean {
  return claim.expires_at !== undefined && claim.expires_at <= now;
}

/** Looks and inserts in one command, so that a new key costs a single one. */
async function claim(
  claims: Collection<ClaimDocument>,
  fresh: NewClaim,
  now: Date,
  ids: string[],
): Promise<ClaimDocument> {
  const document: ClaimDocument = {
    _id: claimId(fresh),
    ...fresh,
    status: null,
    body: null,
    created_at: now,
    expires_at: new Date(now.getTime() + OPEN_LIFETIME_MS),
  };
  while (true) {
    if (await insertUnlessThere(claims, document, ids)) return document;
    const found = await claims.find({ _id: { $in: ids } }).toArray();
    const first = found.find((earlier) => !isExpired(earlier, now));
    if (first !== undefined) return first;
    for (const { _id, resource_id } of found) {
      const stale: Filter<ClaimDocument> = { _id, resource_id };
      await claims.deleteOne({ ...stale, expires_at: { $lte: now } });
    }
  }
}

/** False when one of them is there, or another call has inserted it at the same moment. */
async function insertUnlessThere(
  claims: Collection<ClaimDocument>,
  document: ClaimDocument,
  ids: string[],
): Promise<boolean> {
  try {
    const once = { upsert: true };
    const filter = { _id: { $in: ids } };
    return (await claims.updateOne(filter, { $setOnInsert: document }, once)).upsertedCount === 1;
  } catch (error) {
    if (!isDuplicateKey(error, '_id_')) throw error;
    return false;
  }
}

async function complete(
  claims: Collection<ClaimDocument>,
  open: ClaimDocument,
  status: number,
  body: string,
): Promise<{ status: number; body: string }> {
  const { _id, resource_id } = open;
  const kept = await claims.findOneAndUpdate(
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
  return { status: kept?.status ?? status, body: kept?.body ?? body };
}
