import { createCryptoPayment, createCryptoSettlement } from '../../domain/wire/crypto';
import { createPayment } from '../../domain/wire/payments';
import { createPayout } from '../../domain/wire/payouts';
import { createRecipient } from '../../domain/wire/recipients';
import { createRefund } from '../../domain/wire/refunds';
import { KINDS, LIFECYCLES } from '../../lifecycles';
import { type Difference, difference } from './compare';
import { all, type InSnapshot, type Read } from './snapshot';

const PAGE = 1_000;

/** Collections by the operation that writes to them. */
const WRITTEN_BY = new Map<string, string>([
  [createPayment.operation, 'payments'],
  [createRefund.operation, 'refunds'],
  [createPayout.operation, 'payouts'],
  [createRecipient.operation, 'recipients'],
  [createCryptoPayment.operation, 'crypto_payments'],
  [createCryptoSettlement.operation, 'crypto_settlements'],
]);

const COLLECTIONS = new Map<string, string>(
  KINDS.map((kind) => [kind, LIFECYCLES[kind].collection]),
);

/** Rows that point at others, as they are read page by page. */
interface Pointers<Row> {
  collection: string;
  /** Field that orders the rows, and that an index has. */
  key: keyof Row & string;
  projection: Record<string, unknown>;
  compare: (read: Read, rows: Row[]) => Promise<Difference[]>;
}

interface Claim {
  _id: string;
  resource_id: string;
  operation: string;
  open: boolean;
}

const CLAIMS: Pointers<Claim> = {
  collection: 'idempotency',
  key: 'resource_id',
  // The request may hold what is about a person.
  projection: { resource_id: 1, operation: 1, open: { $gt: ['$request', null] } },
  compare: async (read, rows) => {
    const written = await existing(
      read,
      rows.flatMap(({ resource_id, operation }) => {
        const collection = WRITTEN_BY.get(operation);
        return collection === undefined ? [] : [{ collection, id: resource_id }];
      }),
    );
    return rows.flatMap(({ resource_id, operation, open }) => {
      const collection = WRITTEN_BY.get(operation);
      if (collection === undefined) return [];
      const isWritten = written.has(`${collection}/${resource_id}`);
      if (!open && !isWritten) {
        return [difference('claim_without_resource', resource_id, operation, resource_id, null)];
      }
      // A recipient is written before its claim is emptied, in a write of its own.
      return open && isWritten && collection !== 'recipients'
        ? [difference('claim_left_open', resource_id, operation, null, 'open')]
        : [];
    });
  },
};

interface EventRow {
  _id: string;
  type: string;
  resource_id: string;
}

const EVENTS: Pointers<EventRow> = {
  collection: 'events',
  key: '_id',
  projection: { type: 1, resource_id: 1 },
  compare: async (read, rows) => {
    const told = rows.flatMap(({ _id, type, resource_id }) => {
      const collection = COLLECTIONS.get(kindOf(type));
      return collection === undefined ? [] : [{ _id, collection, id: resource_id }];
    });
    const there = await existing(read, told);
    return told
      .filter(({ collection, id }) => !there.has(`${collection}/${id}`))
      .map(({ _id, id }) => difference('event_without_resource', _id, 'resource_id', id, null));
  },
};

/** Kind of resource that an event's type begins with, as `crypto_payment`. */
function kindOf(type: string): string {
  const [first = '', second = ''] = type.split('.');
  return first === 'crypto' ? `${first}_${second}` : first;
}

const DELIVERIES: Pointers<{ event_id: string }> = {
  collection: 'deliveries',
  key: 'event_id',
  projection: { _id: 0, event_id: 1 },
  compare: async (read, rows) => {
    const ids = [...new Set(rows.map(({ event_id }) => event_id))];
    const there = await existing(
      read,
      ids.map((id) => ({ collection: 'events', id })),
    );
    return ids
      .filter((id) => !there.has(`events/${id}`))
      .map((id) => difference('delivery_without_event', id, null, id, null));
  },
};

/**
 * Compares idempotency keys with their resources; and, when everything is to be read, events with
 * their resources and deliveries with their events.
 */
export async function* compareRelated(
  inSnapshot: InSnapshot,
  isFull: boolean,
): AsyncGenerator<Difference[]> {
  yield* walk(inSnapshot, CLAIMS);
  if (!isFull) return;
  yield* walk(inSnapshot, EVENTS);
  yield* walk(inSnapshot, DELIVERIES);
}

async function* walk<Row extends object>(
  inSnapshot: InSnapshot,
  { collection, key, projection, compare }: Pointers<Row>,
): AsyncGenerator<Difference[]> {
  let after = '';
  while (true) {
    const filter = { [key]: { $gt: after } };
    const { rows, differences } = await inSnapshot(async (read) => {
      const options = { sort: { [key]: 1 as const }, limit: PAGE, projection };
      const rows = await all(read<Row>(collection, filter, options));
      return { rows, differences: await compare(read, rows) };
    });
    yield differences;
    const last = rows.at(-1);
    if (last === undefined || rows.length < PAGE) return;
    after = String(last[key]);
  }
}

/** Those of the rows that are there, as `collection/id`. */
async function existing(
  read: Read,
  wanted: readonly { collection: string; id: string }[],
): Promise<Set<string>> {
  const found = new Set<string>();
  for (const collection of new Set(wanted.map((one) => one.collection))) {
    const ids = wanted.filter((one) => one.collection === collection).map(({ id }) => id);
    const rows = read<{ _id: string }>(
      collection,
      { _id: { $in: ids } },
      { projection: { _id: 1 } },
    );
    for await (const { _id } of rows) found.add(`${collection}/${_id}`);
  }
  return found;
}
