import type { ClientSession, Db } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';
import type { Role } from '../domain/account/dashboard-role';

/** Invitation to the team of an account. Its link is shown once, so only the hash is stored. */
export interface InvitationDocument {
  _id: string;
  account_id: string;
  email: string;
  role: Role;
  /** User who made it; null when an operator did. */
  invited_by: string | null;
  created_at: string;
  expires_at: Date;
}

const INVITATIONS_MAX = 200;

export function createInvitationStore(db: Db) {
  const invitations = db.collection<InvitationDocument>('dashboard_invitations');
  return {
    ensureIndexes: indexBuilder(invitations, [
      { key: { account_id: 1, email: 1 }, name: 'account_email', unique: true },
      { key: { expires_at: 1 }, name: 'expired', expireAfterSeconds: 0 },
    ]),
    /** Replaces an earlier invitation of the address, whose link becomes invalid. */
    put: async (invitation: InvitationDocument, session: ClientSession): Promise<void> => {
      const { account_id, email } = invitation;
      await invitations.deleteOne({ account_id, email }, { session });
      await invitations.insertOne(invitation, { session });
    },
    find: (id: string, now: Date) => invitations.findOne({ _id: id, expires_at: { $gt: now } }),
    consume: (id: string, now: Date, session: ClientSession) =>
      invitations.findOneAndDelete({ _id: id, expires_at: { $gt: now } }, { session }),
    withdraw: (account_id: string, email: string, session: ClientSession) =>
      invitations.findOneAndDelete({ account_id, email }, { session }),
    /** Lists what a user has made, to be withdrawn. */
    by: (account_id: string, invited_by: string, session: ClientSession) =>
      invitations.find({ account_id, invited_by }, { session }).toArray(),
    forAccount: (account_id: string, now: Date) =>
      invitations
        .find({ account_id, expires_at: { $gt: now } })
        .sort({ created_at: -1 })
        .limit(INVITATIONS_MAX)
        .toArray(),
  };
}
