import type { Document, FindOptions } from 'mongodb';
import { eventId } from '../base/ids';
import type { CallbackResource } from '../domain/callback/callback';
import { bookId, type EntryKind, type EntryLine } from '../ledger/entries';
import type { PaymentDocument } from '../store/payments';
import { compareValues, type Difference, difference, type EntryRow } from './compare';
import { type Read, readAll } from './snapshot';

/** Fields that the check needs of every resource. */
export type CommonFields = Pick<PaymentDocument, 'account_id' | 'livemode' | 'currency'> & {
  status: string;
};

/** Postings of a state; a function where more than the state decides. */
export type ExpectedKinds<Part, Kind> = readonly Kind[] | ((part: Part) => readonly Kind[]);

/** Postings that the ledger must hold for the resources of one collection. */
export interface ResourceRule<Part extends CommonFields, Kind extends EntryKind> {
  collection: string;
  /** Fields of the document that decide. */
  fields: readonly (keyof Part & string)[];
  /** Postings that each state calls for, each once. */
  entries: Record<Part['status'], ExpectedKinds<Part, Kind>>;
  lines: Record<Kind, (part: Part) => EntryLine[]>;
  /** Parts of which each has a posting of its own; the resource is one when not given. */
  steps?: (part: Part, kind: Kind) => { step: string; lines: EntryLine[] }[];
  /** Book of its postings; that of its currency when not given. */
  book?: (part: Part) => string;
  /** Versions of which an event tells; each but the first when not given. */
  reportedVersions?: (part: Part & ResourceRow) => number[];
}

/** Posting that must be there. */
interface ExpectedEntry<Kind extends EntryKind> {
  kind: Kind;
  step?: string;
  lines: EntryLine[];
}

/** Fields that are read of every resource beside those of its rule. */
export interface ResourceRow extends CommonFields {
  _id: string;
  connector: string;
  version: number;
  updated_at: string;
  /** Count of a payment's refunds. */
  refunded?: number;
  /** Payment of a refund. */
  payment_id?: string;
}

const ROW_FIELDS = ['connector', 'version', 'updated_at', 'refunded', 'payment_id'];

/** Resources that were compared in one snapshot. */
export interface Page {
  rows: number;
  last: Pick<ResourceRow, '_id' | 'updated_at'> | undefined;
  differences: Difference[];
}

/** Check of the resources of one kind. */
export interface ResourceCheck {
  kind: CallbackResource;
  collection: string;
  /** Kinds of its postings. */
  entryKinds: ReadonlySet<string>;
  /** Finds resources, and compares each with its postings, events and relations. */
  page: (read: Read, filter: Document, options: FindOptions) => Promise<Page>;
}

/** Compares resources with others of which they tell. */
export type Relations = (read: Read, rows: readonly ResourceRow[]) => Promise<Difference[]>;

/** Versions that a resource can have; more than its states, and a bound for what is read. */
const VERSIONS_MAX = 100;

/** Check by a rule: a resource, the postings that its state calls for, and the event of each move. */
export function resourceCheck<Part extends CommonFields, Kind extends EntryKind>(
  kind: CallbackResource,
  rule: ResourceRule<Part, Kind>,
  relations: Relations = async () => [],
): ResourceCheck {
  const { collection, fields, lines } = rule;
  const projection = Object.fromEntries([...fields, ...ROW_FIELDS].map((field) => [field, 1]));
  const kinds = Object.keys(lines);
  const page = async (read: Read, filter: Document, options: FindOptions): Promise<Page> => {
    const rows = await readAll(
      read<Part & ResourceRow>(collection, filter, { ...options, projection }),
    );
    const ids = rows.map(({ _id }) => _id);
    const entryRows = read<EntryRow>('ledger_postings', {
      resource_id: { $in: ids },
      kind: { $in: kinds },
    });
    const byResource = new Map<string, EntryRow[]>(ids.map((id) => [id, []]));
    for await (const entry of entryRows) byResource.get(entry.resource_id)?.push(entry);
    const differences = [
      ...rows.flatMap((row) => compareResource(rule, row, byResource.get(row._id) ?? [])),
      ...(await missingEvents(read, kind, rows, rule.reportedVersions ?? listAllVersions)),
      ...(await relations(read, rows)),
    ];
    return { rows: rows.length, last: rows.at(-1), differences };
  };
  return { kind, collection, entryKinds: new Set(kinds), page };
}

/** Pure: differences between the postings that the state calls for and those that are there. */
function compareResource<Part extends CommonFields, Kind extends EntryKind>(
  { entries: byState, lines, steps, book = bookId }: ResourceRule<Part, Kind>,
  resource: Part & ResourceRow,
  entries: readonly EntryRow[],
): Difference[] {
  const { _id, status } = resource;
  const states = new Map<string, ExpectedKinds<Part, Kind>>(Object.entries(byState));
  const expectedKinds = states.get(status);
  if (expectedKinds === undefined)
    return [difference('status_unknown', _id, 'status', null, status)];
  const kinds = typeof expectedKinds === 'function' ? expectedKinds(resource) : expectedKinds;
  const expectedEntries = kinds.flatMap((kind): ExpectedEntry<Kind>[] =>
    steps === undefined
      ? [{ kind, lines: lines[kind](resource) }]
      : steps(resource, kind).map((each) => ({ kind, ...each })),
  );
  const matched = new Set<string>();
  const differences = expectedEntries.flatMap(({ kind, step, lines: each }): Difference[] => {
    const expected = describeLines(book(resource), each);
    const match = entries.find((entry) => entry.kind === kind && entry.step === step);
    const part = step === undefined ? kind : `${kind}:${step}`;
    if (match === undefined) return [difference('posting_missing', _id, part, expected, null)];
    matched.add(match._id);
    const actual = describeLines(match.book, match.legs);
    return compareValues('posting_differs', _id, match._id, expected, actual);
  });
  const extra = entries.filter((entry) => !matched.has(entry._id));
  return [
    ...differences,
    ...extra.map(({ _id: id, book, legs: foundLines }) =>
      difference('posting_extra', _id, id, null, describeLines(book, foundLines)),
    ),
  ];
}

/** Versions of a resource that begins without an event, at version 1, and tells of every move. */
function listAllVersions({ version }: ResourceRow): number[] {
  const last = Math.min(version, VERSIONS_MAX);
  return Array.from({ length: Math.max(0, last - 1) }, (_, before) => before + 2);
}

/** Tells versions without their event. */
async function missingEvents<Row extends ResourceRow>(
  read: Read,
  kind: CallbackResource,
  rows: readonly Row[],
  listVersions: (row: Row) => number[],
): Promise<Difference[]> {
  const expectedEvents = new Map<string, { _id: string; version: number }>();
  for (const row of rows) {
    const { _id } = row;
    for (const version of listVersions(row))
      expectedEvents.set(eventId(kind, _id, version), { _id, version });
  }
  const ids = { _id: { $in: [...expectedEvents.keys()] } };
  const eventRows = read<{ _id: string }>('events', ids, { projection: { _id: 1 } });
  for await (const { _id } of eventRows) expectedEvents.delete(_id);
  return [...expectedEvents].map(([event, { _id, version }]) =>
    difference('event_missing', _id, `version ${version}`, event, null),
  );
}

/** Text of legs, sorted, since their order does not matter, and of their book. */
function describeLines(book: string, lines: EntryRow['legs'] = []): string {
  const each = lines.map(({ account, amount }) => `${account} ${amount}`).sort();
  return `${each.join(', ')} in ${book}`;
}
