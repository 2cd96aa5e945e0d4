import type { CallbackResource } from '../../domain/callback/callback';
import type { Customer } from '../../domain/creation';
import type { Resource } from '../../lifecycles';
import type { CallbackDocument } from '../../store/callbacks';
import type { RecipientDocument } from '../../store/recipients';
import type { Owner, ServiceDeps } from '../deps';
import { type Documents, getRows, type Kind } from './list';
import { assembleTimeline, type TimelineEntry } from './timeline';

/** Enough for any resource: it makes only a few transitions. */
const EVENTS_MAX = 100;
const REFUNDS_MAX = 100;

type ReadDeps = Pick<ServiceDeps, 'stores'>;

export interface ReadResource<D> {
  resource: D;
  timeline: TimelineEntry[];
}

export async function readResource<K extends Kind>(
  deps: ReadDeps,
  kind: K,
  { account_id, livemode }: Owner,
  id: string,
): Promise<ReadResource<Documents[K]> | null> {
  const resource = await getRows(deps, kind).find(id, account_id, livemode);
  return resource && { resource, timeline: await readTimeline(deps, kind, resource) };
}

export interface ReadPayment extends ReadResource<Documents['payment']> {
  customer: Customer;
  refunds: Documents['refund'][];
}

export async function readPayment(
  deps: Pick<ServiceDeps, 'stores' | 'payers'>,
  owner: Owner,
  id: string,
): Promise<ReadPayment | null> {
  const payment = await readResource(deps, 'payment', owner, id);
  if (payment === null) return null;
  const [customer, refunds] = await Promise.all([
    deps.payers.decrypt(payment.resource),
    deps.stores.refunds.list({ ...owner, payment_id: id, limit: REFUNDS_MAX }),
  ]);
  return { ...payment, customer, refunds };
}

export interface ReadPayout extends ReadResource<Documents['payout']> {
  recipient: RecipientDocument | null;
}

export async function readPayout(
  deps: ReadDeps,
  owner: Owner,
  id: string,
): Promise<ReadPayout | null> {
  const payout = await readResource(deps, 'payout', owner, id);
  if (payout === null) return null;
  const { recipient_id } = payout.resource;
  const { account_id, livemode } = owner;
  const recipient = await deps.stores.recipients.find(recipient_id, account_id, livemode);
  return { ...payout, recipient };
}

export async function readTimeline(
  { stores }: { stores: Pick<ServiceDeps['stores'], TimelineStore> },
  kind: CallbackResource,
  resource: Resource,
): Promise<TimelineEntry[]> {
  const { _id, account_id, livemode, connector } = resource;
  const [idempotencyRecord, callbacks, journalEntries, newestEvents] = await Promise.all([
    stores.idempotency.forResource(_id),
    stores.callbacks.forResource(_id),
    stores.ledger.forResource(_id),
    stores.events.list({ account_id, livemode, resource_id: _id, limit: EVENTS_MAX }),
  ]);
  const events = newestEvents.reverse();
  const attempts = await stores.deliveries.forEvents(events.map((event) => event._id));
  // A callback may name a resource of another connector or kind, and a refused one was not
  // verified.
  const isOwn = (row: CallbackDocument) => row.connector === connector && row.resource === kind;
  const ownCallbacks = callbacks.filter((row) => isOwn(row) && row.refused !== true);
  return assembleTimeline({
    kind,
    resource,
    idempotencyRecord,
    callbacks: ownCallbacks,
    events,
    attempts,
    journalEntries,
  });
}

type TimelineStore = 'callbacks' | 'deliveries' | 'events' | 'idempotency' | 'ledger';
