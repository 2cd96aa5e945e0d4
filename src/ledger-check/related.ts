import { KINDS, RESOURCES } from '../domain/resources';
import { createRecipient } from '../domain/wire/recipients';
import { type Difference, difference } from './compare';
import { type InSnapshot, type Read, readAll } from './snapshot';

const PAGE = 1_000;

const WRITTEN_BY = new Map<string, string>([
  [createRecipient.operation, 'recipients'],
  ...KINDS.map((kind) => [RESOURCES[kind].operation, RESOURCES[kind].collection] as const),
]);

const COLLECTIONS = new Map<string, string>(
  KINDS.map((kind) => [kind, RESOURCES[kind].collection]),
);

interface Pointers<Row> {
  collection: string;
  key: keyof Row & string;
  projection: Record<string, unknown>;
  compare: (read: Read, rows: Row[]) => Promise<Difference[]>;
}

interface RecordRow {
  _id: string;
  resource_id: string;
  operation: string;
  open: boolean;
}

const RECORDS: Pointers<RecordRow> = {
  collection: 'idempotency',
  key: 'resource_id',
  // The request may hold personal data, so it is not read.
  projection: { resource_id: 1, operation: 1, open: { $gt: ['$request', null] } },
  compare: async (read, rows) => {
    const existingIds = await findExisting(
      read,
      rows.flatMap(({ resource_id, operation }) => {
        const collection = WRITTEN_BY.get(operation);
        return collection === undefined ? [] : [{ collection, id: resource_id }];
      }),
    );
    return rows.flatMap(({ resource_id, operation, open }) => {
      const collection = WRITTEN_BY.get(operation);
      if (collection === undefined) return [];
      const isWritten = existingIds.has(`${collection}/${resource_id}`);
      if (!open && !isWritten) {
        return [difference('claim_without_resource', resource_id, operation, resource_id, null)];
      }
      // A recipient is written before its record is emptied, in a separate write.
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
    const reportedEvents = rows.flatMap(({ _id, type, resource_id }) => {
      const collection = COLLECTIONS.get(parseKind(type));
      return collection === undefined ? [] : [{ _id, collection, id: resource_id }];
    });
    const existingIds = await findExisting(read, reportedEvents);
    return reportedEvents
      .filter(({ collection, id }) => !existingIds.has(`${collection}/${id}`))
      .map(({ _id, id }) => difference('event_without_resource', _id, 'resource_id', id, null));
  },
};

/** Parses the kind of the resource, as `crypto_payment`. */
function parseKind(type: string): string {
  const [first = '', second = ''] = type.split('.');
  return first === 'crypto' ? `${first}_${second}` : first;
}

/** Compares idempotency keys, and in a full run events, with their resources. */
export async function* compareRelated(
  inSnapshot: InSnapshot,
  isFull: boolean,
): AsyncGenerator<Difference[]> {
  yield* comparePages(inSnapshot, RECORDS);
  if (!isFull) return;
  yield* comparePages(inSnapshot, EVENTS);
}

async function* comparePages<Row extends object>(
  inSnapshot: InSnapshot,
  { collection, key, projection, compare }: Pointers<Row>,
): AsyncGenerator<Difference[]> {
  let after = '';
  while (true) {
    const filter = { [key]: { $gt: after } };
    const { rows, differences } = await inSnapshot(async (read) => {
      const options = { sort: { [key]: 1 as const }, limit: PAGE, projection };
      const rows = await readAll(read<Row>(collection, filter, options));
      return { rows, differences: await compare(read, rows) };
    });
    yield differences;
    const last = rows.at(-1);
    if (last === undefined || rows.length < PAGE) return;
    after = String(last[key]);
  }
}

/** Finds the documents that exist, as `collection/id`. */
async function findExisting(
  read: Read,
  refs: readonly { collection: string; id: string }[],
): Promise<Set<string>> {
  const existingIds = new Set<string>();
  for (const collection of new Set(refs.map((one) => one.collection))) {
    const ids = refs.filter((one) => one.collection === collection).map(({ id }) => id);
    const rows = read<{ _id: string }>(
      collection,
      { _id: { $in: ids } },
      { projection: { _id: 1 } },
    );
    for await (const { _id } of rows) existingIds.add(`${collection}/${_id}`);
  }
  return existingIds;
}
