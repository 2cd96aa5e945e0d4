import type { ClientSession, Collection, Db } from 'mongodb';
import { isDuplicateKey } from '../base/mongo';
import { type MissingIndexes, makeIndexes } from '../base/mongo-indexes';
import type { AcceptedRecipient } from '../domain/creation';
import type { RecipientFacts } from '../domain/payout/recipient';
import { Encrypted } from '../encryption/encrypter';
import type { IdempotencyRecord } from './idempotency';

/** Recipient: the facts that rules need, and everything else sealed. @see docs/api.md#recipients */
export interface RecipientDocument extends RecipientFacts {
  _id: string;
  account_id: string;
  livemode: boolean;
  last4: string;
  /** Details as JSON (`RecipientDetails`), bound to `recipient/{id}`; null once they are deleted. */
  sealed: Encrypted | null;
  /** Key of the ring that sealed them; null once they are deleted. */
  kid: string | null;
  created_at: string;
  /** When it was created or last paid, as far as the retention workflow has read. */
  used_at: string;
  /** When the details were deleted; null or absent while they are kept. */
  deleted_at?: string | null;
  request_id: string;
}

/** Recipient whose details are kept. */
export interface EncryptedRecipient extends RecipientDocument {
  sealed: Encrypted;
}

/** Claim whose recipient is sealed but not written yet. */
export interface RecipientRecord extends Omit<IdempotencyRecord, 'request'> {
  request: AcceptedRecipient;
}

export type RecipientStore = ReturnType<typeof createRecipientStore>;

/** Owner that a recipient's details are sealed for. */
export function recipientOwner(id: string): string {
  return `recipient/${id}`;
}

/** Document of the recipient that a claim holds. */
export function buildRecipient(
  owner: { id: string; account_id: string; livemode: boolean; request_id: string },
  { recipient }: AcceptedRecipient,
  now: Date,
): RecipientDocument {
  const { id: _id, account_id, livemode, request_id } = owner;
  const { sealed, ...plainFacts } = recipient;
  return {
    _id,
    account_id,
    livemode,
    ...plainFacts,
    sealed: Encrypted.parse(sealed),
    created_at: now.toISOString(),
    used_at: now.toISOString(),
    request_id,
  };
}

const RECORD_KID = 'request.recipient.kid';

/** Recipients whose details are kept. */
const HAS_DETAILS = { kid: { $type: 'string' } } as const;

/** Facts that go with the details; those that past payouts are shown by stay. */
const ERASED = { sealed: null, kid: null, has: [], card_expires: null, iban_in_sepa: null };

export function createRecipientStore(db: Db) {
  const recipients: Collection<RecipientDocument> = db.collection<RecipientDocument>('recipients');
  const records = db.collection<RecipientRecord>('idempotency');
  return {
    ensureIndexes: async (missing?: MissingIndexes): Promise<void> => {
      await makeIndexes(
        recipients,
        [
          { key: { account_id: 1, livemode: 1, created_at: -1 }, name: 'account' },
          { key: { kid: 1, _id: 1 }, name: 'kid' },
          { key: { used_at: 1 }, name: 'used', partialFilterExpression: HAS_DETAILS },
        ],
        missing,
      );
      await makeIndexes(
        records,
        [{ key: { [RECORD_KID]: 1 }, name: 'recipient_kid', sparse: true }],
        missing,
      );
    },
    /** Inserts once: a repeat with the same id changes nothing. */
    insert: async (recipient: RecipientDocument): Promise<void> => {
      try {
        await recipients.insertOne(recipient);
      } catch (error) {
        if (!isDuplicateKey(error, '_id_')) throw error;
      }
    },
    /** Finds by id alone, for the service's own steps. */
    get: (id: string) => recipients.findOne({ _id: id }),
    /** Finds by id within one account and environment, as a merchant may see it. */
    find: (id: string, account_id: string, livemode: boolean) =>
      recipients.findOne({ _id: id, account_id, livemode }),
    /**
     * Deletes the details for good; again changes nothing.
     * @param only what it must be, where that is known: its account, environment or last use
     * @returns the recipient as it was before; null when there is none
     */
    eraseDetails: (
      id: string,
      deleted_at: string,
      only: { account_id?: string; livemode?: boolean; used_at?: string },
      session?: ClientSession,
    ) =>
      recipients.findOneAndUpdate(
        { _id: id, ...only },
        [{ $set: { ...ERASED, deleted_at: { $ifNull: ['$deleted_at', deleted_at] } } }],
        { session, returnDocument: 'before' },
      ),
    /** Lists recipients whose details are kept and that were not used since, the oldest first. */
    unusedSince: (before: string, limit: number) =>
      recipients
        .find({ ...HAS_DETAILS, used_at: { $lt: before } })
        .sort({ used_at: 1 })
        .limit(limit)
        .project<{ _id: string; used_at: string }>({ used_at: 1 })
        .toArray(),
    /** Notes a later use, unless another was noted. */
    noteUse: (id: string, before: string, used_at: string) =>
      recipients.updateOne({ _id: id, used_at: before }, { $set: { used_at } }),
    /**
     * Lists recipients of one environment that other keys than `kid` sealed, by id, starting behind
     * `after`.
     */
    listByOtherKeys: (livemode: boolean, kid: string, limit: number, after = '') =>
      recipients
        .find<EncryptedRecipient>({
          kid: { $type: 'string', $ne: kid },
          _id: { $gt: after },
          livemode,
        })
        .sort({ _id: 1 })
        .limit(limit)
        .toArray(),
    /** Replaces the sealed details, unless they were sealed anew meanwhile. */
    reencrypt: (id: string, before: Encrypted, encrypted: Encrypted, kid: string) =>
      recipients.updateOne({ _id: id, sealed: before }, { $set: { sealed: encrypted, kid } }),
    /** Counts the recipients that each key has sealed. */
    countByKey: () => countBy(recipients, 'kid', { kid: { $type: 'string' } }),
    /** Lists claims whose recipients are not written yet, sealed by other keys than `kid`. */
    listRecordsByOtherKeys: (livemode: boolean, kid: string, limit: number, after = '') =>
      records
        .find({ [RECORD_KID]: { $exists: true, $ne: kid }, _id: { $gt: after }, livemode })
        .sort({ _id: 1 })
        .limit(limit)
        .toArray(),
    countRecordsByKey: () => countBy(records, RECORD_KID, { [RECORD_KID]: { $exists: true } }),
  };
}

async function countBy<T extends object>(
  collection: Collection<T>,
  field: string,
  match: object,
): Promise<Map<string, number>> {
  const groups = await collection
    .aggregate<{ _id: string; count: number }>([
      { $match: match },
      { $group: { _id: `$${field}`, count: { $sum: 1 } } },
    ])
    .toArray();
  return new Map(groups.map(({ _id, count }) => [_id, count]));
}
