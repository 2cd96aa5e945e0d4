import { toLowerId } from '../../../domain/shape';
import { operationId } from '../../../ledger/entries';
import type { Documents, Resource } from '../../../lifecycles';
import type { CallbackDocument } from '../../../store/callbacks';
import type { DisputeDocument } from '../../../store/disputes';
import type { ListFilter } from '../../../store/list';
import type { Owner, ServiceDeps } from '../../access';
import { listHeld } from '../../banks/movements';
import { withDeliveries } from '../../events/list';
import { type ListPage, type ListQuery, readPage, singleRow, toBounds } from '../../paging';
import { assembleTimeline, type TimelineEntry } from './timeline';

export type { Documents } from '../../../lifecycles';

export type { ResourceDocument } from '../../../store/resource';

export type Kind = keyof Documents;

/** Searched in addition to the id. */
const SEARCH_FIELDS = {
  payment: 'reference',
  refund: 'payment_id',
  dispute: 'payment_id',
  payout: 'reference',
  crypto_payment: 'reference',
  crypto_settlement: 'transaction_id',
} as const satisfies Record<Kind, string>;

interface Filter extends Omit<ListFilter, 'limit'> {
  status?: string | undefined;
  method?: string | undefined;
}

interface Rows<D> {
  find(id: string, account_id: string, livemode: boolean): Promise<D | null>;
  list(filter: Filter & { limit: number }): Promise<D[]>;
  export(filter: Filter): AsyncIterable<D>;
  listNeedingAttention(account_id: string, livemode: boolean, limit: number): Promise<D[]>;
}

type ReadDeps = Pick<ServiceDeps, 'stores'>;

export function getRows<K extends Kind>({ stores }: ReadDeps, kind: K): Rows<Documents[K]> {
  const rows: { [Each in Kind]: Rows<Documents[Each]> } = {
    payment: stores.payments,
    refund: stores.refunds,
    dispute: stores.disputes,
    payout: stores.payouts,
    crypto_payment: stores.crypto_payments,
    crypto_settlement: stores.crypto_settlements,
  };
  return rows[kind];
}

const ID = /^(?:dp_)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** A search for an id finds that resource, or else those that refer to it. */
export async function listResources<K extends Kind>(
  deps: ReadDeps,
  kind: K,
  owner: Owner,
  query: ListQuery,
): Promise<ListPage<Documents[K]>> {
  const rows = getRows(deps, kind);
  if (ID.test(query.search)) {
    const { account_id, livemode } = owner;
    const match = await rows.find(query.search.toLowerCase(), account_id, livemode);
    if (match !== null) return singleRow(match);
  }
  const filter = buildFilter(kind, owner, query);
  return await readPage<Documents[K]>(query, (page) => rows.list({ ...filter, ...page }));
}

/** Newest first. */
export function exportResources<K extends Kind>(
  deps: ReadDeps,
  kind: K,
  owner: Owner,
  query: ListQuery,
): AsyncIterable<Documents[K]> {
  return getRows(deps, kind).export(buildFilter(kind, owner, query));
}

function buildFilter(kind: Kind, owner: Owner, query: ListQuery): Filter {
  const { search, status, method } = query;
  // A merchant's reference may be a UUID in upper case, as its database writes them.
  const searched = { $in: [search, toLowerId(search)] };
  const searchFilter = search === '' ? {} : { [SEARCH_FIELDS[kind]]: searched };
  return { ...owner, status, method, ...toBounds(query), ...searchFilter };
}

/** A resource makes only a few transitions. */
const EVENTS_MAX = 100;
const ROWS_MAX = 100;

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

export type ReadPayment = NonNullable<Awaited<ReturnType<typeof readPayment>>>;

export async function readPayment(
  deps: Pick<ServiceDeps, 'stores' | 'payers'>,
  owner: Owner,
  id: string,
) {
  const payment = await readResource(deps, 'payment', owner, id);
  if (payment === null) return null;
  const own = { ...owner, payment_id: id, limit: ROWS_MAX };
  const [customer, refunds, disputes, held] = await Promise.all([
    deps.payers.decrypt(payment.resource),
    deps.stores.refunds.list(own),
    deps.stores.disputes.list(own),
    listHeld(deps, id),
  ]);
  return { ...payment, customer, refunds, disputes, held };
}

export async function readDispute(deps: ReadDeps, owner: Owner, id: string) {
  const dispute = await readResource(deps, 'dispute', owner, id);
  if (dispute === null) return null;
  const { account_id, livemode, payment_id } = dispute.resource;
  const payment = await deps.stores.payments.find(payment_id, account_id, livemode);
  return payment && { ...dispute, payment };
}

export type ReadPayout = NonNullable<Awaited<ReturnType<typeof readPayout>>>;

export async function readPayout(deps: ReadDeps, owner: Owner, id: string) {
  const payout = await readResource(deps, 'payout', owner, id);
  if (payout === null) return null;
  const { recipient_id } = payout.resource;
  const { account_id, livemode } = owner;
  const recipient = await deps.stores.recipients.find(recipient_id, account_id, livemode);
  return { ...payout, recipient };
}

export async function readTimeline(
  { stores }: ReadDeps,
  kind: Kind,
  resource: Resource,
): Promise<TimelineEntry[]> {
  const { _id, account_id, livemode, connector } = resource;
  const [idempotencyRecord, { callbacks, entries }, newestEvents] = await Promise.all([
    stores.idempotency.forResource(_id),
    readReported(stores, resource),
    stores.events.list({ account_id, livemode, resource_id: _id, limit: EVENTS_MAX }),
  ]);
  const events = await withDeliveries({ stores }, newestEvents.reverse(), 'readLogs');
  // A callback may name another connector's resource, and a refused one was not verified.
  const isOwn = (row: CallbackDocument) =>
    row.connector === connector && row.resource === (kind === 'dispute' ? 'payment' : kind);
  return assembleTimeline({
    kind,
    resource,
    idempotencyRecord,
    callbacks: callbacks.filter((row) => isOwn(row) && row.refused !== true),
    events,
    journalEntries: entries,
  });
}

/** A bank names a payment and its own dispute, and the entries of a dispute are its payment's. */
export async function readReported(
  stores: Pick<ReadDeps['stores'], 'callbacks' | 'ledger'>,
  resource: Resource,
) {
  const dispute = 'transfers' in resource ? resource : undefined;
  const resource_id = dispute?.payment_id ?? resource._id;
  const [callbacks, entries] = await Promise.all([
    stores.callbacks.forResource(resource_id),
    stores.ledger.forResource(resource_id),
  ]);
  if (dispute === undefined) return { callbacks, entries };
  const entryIds = dispute.transfers.map(({ direction, step }) => {
    const kind = direction === 'in' ? 'payment_dispute_won' : `payment_${dispute.kind}`;
    return operationId({ kind, resource_id, step });
  });
  return {
    callbacks: callbacks.filter((row) => isAbout(dispute, row)),
    entries: entries.filter(({ _id }) => entryIds.includes(_id)),
  };
}

/** A closing report may name no dispute, where the payment has one only. */
function isAbout({ name, applied_callbacks }: DisputeDocument, { body }: CallbackDocument) {
  const { callback_id, dispute_id = callback_id } = { dispute_id: undefined, ...body };
  return dispute_id === name || applied_callbacks?.includes(callback_id) === true;
}
