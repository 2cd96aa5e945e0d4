import type { ClientSession } from 'mongodb';
import type { SentHeld, SentResolution } from '../domain/sent-held';

interface Rows {
  updateOne(
    filter: object,
    update: object,
    options: { session: ClientSession },
  ): Promise<{ matchedCount: number }>;
}

export function sentHeldWrites(rows: Rows) {
  const change = async (filter: object, update: object, session: ClientSession) =>
    (await rows.updateOne(filter, update, { session })).matchedCount === 1;
  return {
    recordSentHeld: (_id: string, held: SentHeld, session: ClientSession): Promise<boolean> =>
      change({ _id, 'sent_held.id': { $ne: held.id } }, { $push: { sent_held: held } }, session),
    /** Names money that the bank had not named. */
    nameSentHeld: (
      _id: string,
      { id }: Pick<SentHeld, 'id'>,
      bank_reference: string,
      session: ClientSession,
    ): Promise<boolean> => {
      const filter = { _id, sent_held: { $elemMatch: { id, bank_reference: null } } };
      return change(filter, { $set: { 'sent_held.$.bank_reference': bank_reference } }, session);
    },
    /** Call it in the transaction that has changed the document. */
    replaceSentHeld: (_id: string, sent_held: SentHeld[], session: ClientSession) =>
      change({ _id }, { $set: { sent_held } }, session),
    /** Writes once, and only if nothing more of it has been posted meanwhile. */
    resolveSentHeld: (
      _id: string,
      { id, posted = null }: Pick<SentHeld, 'id'> & { posted?: SentHeld['posted'] | null },
      resolved: SentResolution,
      session: ClientSession,
    ): Promise<boolean> => {
      const filter = { _id, sent_held: { $elemMatch: { id, posted, resolved: null } } };
      return change(filter, { $set: { 'sent_held.$.resolved': resolved } }, session);
    },
  };
}
