import type { ClientSession, Db } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';
import type { Role } from '../domain/merchants/dashboard-role';

/** The link is shown once, so only its hash is stored. */
export interface InvitationDocument {
  _id: string;
  account_id: string;
  email: string;
  role: Role;
  /** Null: an operator. */
  invited_by: string | null;
  created_at: string;
  expires_at: Date;
  /** Hashes of the latest mailed links; any of them works. */
  mailed?: string[];
}

/** More than a team can have: users have 50, and operators invite few. */
const INVITATIONS_MAX = 500;
/** A repeated mail has a link of its own. */
const LINKS_MAX = 5;

export function createInvitationStore(db: Db) {
  const invitations = db.collection<InvitationDocument>('dashboard_invitations');
  const byLink = (hash: string, now: Date) => ({
    $or: [{ _id: hash }, { mailed: hash }],
    expires_at: { $gt: now },
  });
  return {
    ensureIndexes: indexBuilder(invitations, [
      { key: { account_id: 1, email: 1 }, name: 'account_email', unique: true },
      { key: { mailed: 1 }, name: 'mailed', sparse: true },
      { key: { expires_at: 1 }, name: 'expired', expireAfterSeconds: 0 },
    ]),
    /** Replaces an earlier invitation of the address, whose link becomes invalid. */
    put: async (invitation: InvitationDocument, session: ClientSession): Promise<void> => {
      const { account_id, email } = invitation;
      await invitations.deleteOne({ account_id, email }, { session });
      await invitations.insertOne(invitation, { session });
    },
    find: (hash: string, now: Date) => invitations.findOne(byLink(hash, now)),
    consume: (hash: string, now: Date, session: ClientSession) =>
      invitations.findOneAndDelete(byLink(hash, now), { session }),
    /** @returns false when the invitation is used, withdrawn or expired */
    addLink: async (_id: string, hash: string, now: Date): Promise<boolean> => {
      const update = { $push: { mailed: { $each: [hash], $slice: -LINKS_MAX } } };
      const filter = { _id, expires_at: { $gt: now } };
      return (await invitations.updateOne(filter, update)).modifiedCount === 1;
    },
    withdraw: (account_id: string, email: string, session: ClientSession) =>
      invitations.findOneAndDelete({ account_id, email }, { session }),
    by: (account_id: string, invited_by: string, session: ClientSession) =>
      invitations.find({ account_id, invited_by }, { session }).toArray(),
    /** Leaves out the one that another of the address replaces. */
    countOthers: (account_id: string, email: string, now: Date, session: ClientSession) =>
      invitations.countDocuments(
        { account_id, email: { $ne: email }, expires_at: { $gt: now } },
        { session },
      ),
    forAccount: (account_id: string, now: Date) =>
      invitations
        .find({ account_id, expires_at: { $gt: now } })
        .sort({ created_at: -1 })
        .limit(INVITATIONS_MAX)
        .toArray(),
  };
}
