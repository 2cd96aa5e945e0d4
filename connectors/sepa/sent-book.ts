import type { SepaBook } from '../../src/service/sepa/book';
import type { SentBook } from '../kit/restore-guard';

/** Says by their `MsgId` which files the book knows as sent. */
export function createSentBook({ files }: Pick<SepaBook, 'files'>): SentBook {
  return {
    // The bytes of a file that was cut may have left before a kill.
    hasSent: async () => (await files.findOne({ state: { $ne: 'open' } })) !== null,
    listUnknown: async (sent) => {
      const ids = sent.map(({ id }) => id);
      const found = await files.find({ _id: { $in: ids } }, { projection: { state: 1 } }).toArray();
      const states = new Map(found.map(({ _id, state }) => [_id, state]));
      return sent.flatMap(({ id, hasLeft }) => {
        const state = states.get(id) ?? 'open';
        // A kill before the file was noted as sent leaves it cut, and its bytes come again.
        const isKnown = state !== 'open' && !(hasLeft && state === 'cut');
        return isKnown ? [] : [id];
      });
    },
  };
}
