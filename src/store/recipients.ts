import type { ClientSession, Collection, Db } from 'mongodb';
import { isDuplicateKey } from '../base/mongo';
import { type MissingIndexes, makeIndexes } from '../base/mongo-indexes';
import type { AcceptedRecipient } from '../domain/creation';
import type { RecipientFacts } from '../domain/payout/recipient';
import { Encrypted } from '../encryption/encrypter';
import type { IdempotencyRecord } from './idempotency';
import { readPage } from './list';

/** Plain facts for rules, and encrypted details. @see docs/api.md#recipients */
export interface RecipientDocument extends RecipientFacts {
  _id: string;
  account_id: string;
  livemode: boolean;
  last4: string;
  /** `RecipientDetails` as JSON, encrypted for `recipient/{id}`; null once deleted. */
  ciphertext: Encrypted | null;
  /** Keys that decrypt them; null once deleted. */
  kid: string | null;
  created_at: string;
  /** Creation or last payout, as far as the retention workflow has read. */
  used_at: string;
  deleted_at?: string | null;
  request_id: string;
}

interface EncryptedRecipient extends RecipientDocument {
  ciphertext: Encrypted;
}

/** Recipients with the same keys and rails. */
export interface RecipientGroup extends Pick<RecipientFacts, 'type' | 'has' | 'iban_in_sepa'> {
  livemode: boolean;
  kid: string;
}

/** Holds a recipient that is not written yet. */
interface RecipientRecord extends Omit<IdempotencyRecord, 'request'> {
  request: AcceptedRecipient;
}

export type RecipientStore = ReturnType<typeof createRecipientStore>;

export function recipientOwner(id: string): string {
  return `recipient/${id}`;
}

export function buildRecipient(
  owner: { id: string; account_id: string; livemode: boolean; request_id: string },
  { recipient }: AcceptedRecipient,
  now: Date,
): RecipientDocument {
  const { id: _id, account_id, livemode, request_id } = owner;
  const { ciphertext, ...plainFacts } = recipient;
  return {
    _id,
    account_id,
    livemode,
    ...plainFacts,
    ciphertext: Encrypted.parse(ciphertext),
    created_at: now.toISOString(),
    used_at: now.toISOString(),
    request_id,
  };
}

const IN_RECORD = 'request.recipient.';

const HAS_DETAILS = { kid: { $type: 'string' } } as const;

/** Erased with the details; facts that past payouts show stay. */
const ERASED = {
  ...{ ciphertext: null, kid: null, has: [], card_expires: null, iban_in_sepa: null },
  sepa_faults: [],
};

export function createRecipientStore(db: Db) {
  const recipients = db.collection<RecipientDocument>('recipients');
  const records = db.collection<RecipientRecord>('idempotency_records');
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
        [{ key: { [`${IN_RECORD}kid`]: 1 }, name: 'recipient_kid', sparse: true }],
        missing,
      );
    },
    /** A repeat changes nothing. */
    insert: async (recipient: RecipientDocument): Promise<void> => {
      try {
        await recipients.insertOne(recipient);
      } catch (error) {
        if (!isDuplicateKey(error, '_id_')) throw error;
      }
    },
    get: (id: string) => recipients.findOne({ _id: id }),
    find: (id: string, account_id: string, livemode: boolean) =>
      recipients.findOne({ _id: id, account_id, livemode }),
    /**
     * @param only condition on the recipient
     * @returns the recipient as it was before
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
    unusedSince: (before: string, limit: number) =>
      recipients
        .find({ ...HAS_DETAILS, used_at: { $lt: before } })
        .sort({ used_at: 1 })
        .limit(limit)
        .project<{ _id: string; used_at: string }>({ used_at: 1 })
        .toArray(),
    /** Does nothing when another use was recorded. */
    noteUse: (id: string, before: string, used_at: string) =>
      recipients.updateOne({ _id: id, used_at: before }, { $set: { used_at } }),
    listInGroup: (group: RecipientGroup, limit: number, after = '') =>
      readPage<EncryptedRecipient>(recipients, after, limit, buildGroupFilter(group, '')),
    reencrypt: (id: string, before: Encrypted, encrypted: Encrypted, kid: string) =>
      recipients.updateOne(
        { _id: id, ciphertext: before },
        { $set: { ciphertext: encrypted, kid } },
      ),
    listGroups: () => listGroups(recipients, ''),
    listRecordsInGroup: (group: RecipientGroup, limit: number, after = '') =>
      readPage<RecipientRecord>(records, after, limit, buildGroupFilter(group, IN_RECORD)),
    listRecordGroups: () => listGroups(records, IN_RECORD),
  };
}

const GROUP_FIELDS = ['kid', 'type', 'has', 'iban_in_sepa'] as const;

function buildGroupFilter({ livemode, ...group }: RecipientGroup, prefix: string) {
  const conditions = GROUP_FIELDS.map((field) => [`${prefix}${field}`, group[field]]);
  return { livemode, ...Object.fromEntries(conditions) };
}

async function listGroups<T extends object>(
  collection: Collection<T>,
  prefix: string,
): Promise<(RecipientGroup & { count: number })[]> {
  const fields = GROUP_FIELDS.map((field) => [field, `$${prefix}${field}`]);
  const groups = await collection
    .aggregate<{ _id: RecipientGroup; count: number }>([
      { $match: { [`${prefix}kid`]: { $type: 'string' } } },
      {
        $group: {
          _id: { livemode: '$livemode', ...Object.fromEntries(fields) },
          count: { $sum: 1 },
        },
      },
    ])
    .toArray();
  return groups.map(({ _id, count }) => ({ ..._id, count }));
}
