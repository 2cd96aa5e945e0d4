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
  collection: 'idempotency_records',
  key: 'resource_id',
  // The request may hold personal data, so it is not read.
  projection: { resource_id: 1, operation: 1, open: { $gt: ['$request', null] } },
  compare: async (read, rows) => {
    const records = await findResources(read, rows, ({ operation }) => WRITTEN_BY.get(operation));
    return records.flatMap(({ resource_id, operation, open, collection, exists }) => {
      if (!open && !exists) {
        return [difference('claim_without_resource', resource_id, operation, resource_id, null)];
      }
      // A recipient is written before its record is emptied, in a separate write.
      return open && exists && collection !== 'recipients'
        ? [difference('claim_left_open', resource_id, operation, null, 'open')]
        : [];
    });
  },
};

interface EventRow {
  _id: string;
  type: string;
  resource_id: string;
  data: { test?: true };
}

const EVENTS: Pointers<EventRow> = {
  collection: 'events',
  key: '_id',
  projection: { type: 1, resource_id: 1, 'data.test': 1 },
  compare: async (read, rows) => {
    const ours = rows.filter(({ data }) => data.test === undefined);
    const events = await findResources(read, ours, ({ type }) => COLLECTIONS.get(parseKind(type)));
    return events
      .filter(({ exists }) => !exists)
      .map(({ _id, resource_id: id }) =>
        difference('event_without_resource', _id, 'resource_id', id, null),
      );
  },
};

function parseKind(type: string): string {
  const [first = '', second = ''] = type.split('.');
  return first === 'crypto' ? `${first}_${second}` : first;
}

/** Compares idempotency keys with their resources; in a full run, events, too. */
export async function* compareRelated(inSnapshot: InSnapshot, isFull: boolean) {
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

/** Leaves out rows without a collection. */
async function findResources<Row extends { resource_id: string }>(
  read: Read,
  rows: readonly Row[],
  getCollection: (row: Row) => string | undefined,
) {
  const known = rows.flatMap((row) => {
    const collection = getCollection(row);
    return collection === undefined ? [] : [{ ...row, collection }];
  });
  const existing = new Set<string>();
  for (const name of new Set(known.map(({ collection }) => collection))) {
    const own = known.filter(({ collection }) => collection === name);
    const filter = { _id: { $in: own.map(({ resource_id }) => resource_id) } };
    const resources = read<{ _id: string }>(name, filter, { projection: { _id: 1 } });
    for await (const { _id } of resources) existing.add(`${name}/${_id}`);
  }
  return known.map((row) => ({
    ...row,
    exists: existing.has(`${row.collection}/${row.resource_id}`),
  }));
}
