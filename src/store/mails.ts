import type { ClientSession, Db } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';
import type { MailSubject } from '../domain/merchants/mail';

/** A sent mail is deleted. @see docs/dashboard.md#mail */
export interface MailDocument {
  _id: string;
  account_id: string;
  to: string;
  subject: MailSubject;
  created_at: Date;
  /** Time of the next attempt; null: none any more. */
  due_at: Date | null;
  ends_at: Date;
  attempts: number;
  /** An unsent mail is deleted then. */
  expires_at: Date;
}

export interface MailCounts {
  waiting: number;
  given_up: number;
  /** Null when no mail waits. */
  since: Date | null;
}

export function createMailStore(db: Db) {
  const mails = db.collection<MailDocument>('mails');
  const settings = db.collection<{ _id: 'worker'; on: boolean }>('mail_settings');
  const waiting = { due_at: { $ne: null } };
  return {
    ensureIndexes: indexBuilder(mails, [
      { key: { due_at: 1 }, name: 'due' },
      { key: { expires_at: 1 }, name: 'expired', expireAfterSeconds: 0 },
    ]),
    /** Publishes whether there is a mail server, without which nobody adds mail. */
    publish: (on: boolean) =>
      settings.updateOne({ _id: 'worker' }, { $set: { on } }, { upsert: true }),
    isOn: async (session?: ClientSession): Promise<boolean> =>
      (await settings.findOne({ _id: 'worker' }, { session }))?.on ?? false,
    add: (documents: readonly MailDocument[], session: ClientSession) =>
      mails.insertMany([...documents], { session }),
    firstDue: (now: Date) => mails.findOne({ due_at: { $lte: now } }, { sort: { due_at: 1 } }),
    /** @returns false when another worker has the attempt */
    take: async (
      { _id, attempts }: Pick<MailDocument, '_id' | 'attempts'>,
      due_at: Date,
    ): Promise<boolean> => {
      const update = { $set: { due_at }, $inc: { attempts: 1 } };
      return (await mails.updateOne({ _id, attempts }, update)).modifiedCount === 1;
    },
    remove: (_id: string) => mails.deleteOne({ _id }),
    giveUp: (_id: string) => mails.updateOne({ _id }, { $set: { due_at: null } }),
    count: async (): Promise<MailCounts> => {
      const [count, given_up, oldest] = await Promise.all([
        mails.countDocuments(waiting),
        mails.countDocuments({ due_at: null }),
        mails.findOne(waiting, { sort: { created_at: 1 } }),
      ]);
      return { waiting: count, given_up, since: oldest?.created_at ?? null };
    },
  };
}
