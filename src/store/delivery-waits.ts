import type { Collection } from 'mongodb';
import {
  NEXT_ATTEMPT_AT,
  NOT_WAITING,
  PENDING,
  type StoredDelivery,
  WAITING_FOR,
} from './delivery-state';

export function createDeliveryWaits(rows: Collection<StoredDelivery>) {
  return {
    /**
     * @param until latest end of the wait
     * @returns whether the delivery is pending
     */
    noteWaiting: async (id: string, endpoint_id: string, until: string): Promise<boolean> => {
      const { matchedCount } = await rows.updateOne(
        { _id: id, ...PENDING },
        { $set: { [WAITING_FOR]: endpoint_id, [NEXT_ATTEMPT_AT]: until } },
      );
      return matchedCount === 1;
    },
    /** Ends the wait of the oldest delivery; each ends once. */
    endWait: (endpoint_id: string, now: string) =>
      rows.findOneAndUpdate(
        { [WAITING_FOR]: endpoint_id, ...PENDING },
        { $set: { [NEXT_ATTEMPT_AT]: now }, ...NOT_WAITING },
        { sort: { position: 1 }, projection: { _id: 1 } },
      ),
  };
}
