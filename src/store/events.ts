import type { ClientSession, Db } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';
import type { DeliveryStatus, EventType } from '../domain/webhook/event';
import { createDeliveryState, deliveryIndexes, type StoredDelivery } from './delivery-state';
import type { EventDocument } from './event-document';
import { LIST_MS_MAX, type ListFilter, listNewest } from './list';
import { listIndexes, OWNER } from './resource-indexes';

export type { EventDelivery, EventDocument, ResendFilter } from './event-document';

export interface EventFilter extends ListFilter {
  resource_id?: string | undefined;
  type?: EventType | undefined;
  statuses?: readonly DeliveryStatus[] | undefined;
}

/** Events of refunds name their payment, too. */
const OF_REFUND = { 'data.refund_id': { $exists: true } };

export function aboutId(id: string) {
  return { $or: [{ resource_id: id }, { 'data.payment_id': id, ...OF_REFUND }] };
}

export function createEventStore(db: Db) {
  const events = db.collection<EventDocument>('events');
  const state = createDeliveryState(db.collection<StoredDelivery>('events'));
  return {
    ensureIndexes: indexBuilder(events, [
      ...listIndexes('type'),
      { key: { ...OWNER, order: 1, position: 1 }, name: 'order' },
      { key: { ...OWNER, resource_id: 1, position: -1 }, name: 'resource_position' },
      {
        key: { ...OWNER, 'data.payment_id': 1, position: -1 },
        name: 'refunded_payment_position',
        partialFilterExpression: OF_REFUND,
      },
      ...deliveryIndexes(),
    ]),
    insert: (documents: EventDocument[], session: ClientSession) =>
      events.insertMany(documents, { session }),
    get: (id: string): Promise<EventDocument | null> => events.findOne({ _id: id }),
    getAll: (ids: readonly string[]): Promise<EventDocument[]> =>
      events.find({ _id: { $in: [...ids] } }).toArray(),
    listAbout: (id: string, filter: EventFilter) =>
      listNewest<EventDocument>(events, { ...filter, ...aboutId(id) }),
    list: ({ statuses, ...filter }: EventFilter) =>
      listNewest<EventDocument>(
        events,
        statuses === undefined
          ? filter
          : { ...filter, ...{ 'delivery.status': { $in: statuses } } },
      ),
    countSince: (account_id: string, livemode: boolean, since: string): Promise<number> =>
      events.countDocuments(
        { account_id, livemode, position: { $gte: since } },
        { maxTimeMS: LIST_MS_MAX },
      ),
    insertTest: (event: EventDocument) => events.insertOne(event),
    setDelivery: state.setDelivery,
  };
}
