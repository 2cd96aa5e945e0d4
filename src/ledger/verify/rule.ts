import type { Document, FindOptions } from 'mongodb';
import type { CallbackResource } from '../../domain/callback';
import { eventId } from '../../ids';
import type { PaymentDocument } from '../../store/payments';
import { type AnyLeg, bookId, type PostingKind } from '../postings';
import { type Difference, difference, type PostingRow, unlessSame } from './compare';
import { all, type Read } from './snapshot';

/** Fields that the check needs of every resource. */
export type Common = Pick<PaymentDocument, 'account_id' | 'livemode' | 'currency'> & {
  status: string;
};

/** Postings of a state; a function where more than the state decides. */
export type Called<Part, Kind> = readonly Kind[] | ((part: Part) => readonly Kind[]);

/** Postings that the ledger must hold for the resources of one collection. */
export interface ResourceRule<Part extends Common, Kind extends PostingKind> {
  collection: string;
  /** Fields of the document that decide. */
  fields: readonly (keyof Part & string)[];
  /** Postings that each state calls for, each once. */
  postings: Record<Part['status'], Called<Part, Kind>>;
  legs: Record<Kind, (part: Part) => AnyLeg[]>;
  /** Parts of which each has a posting of its own; the resource is one when not given. */
  steps?: (part: Part, kind: Kind) => { step: string; legs: AnyLeg[] }[];
  /** Book of its postings; that of its currency when not given. */
  book?: (part: Part) => string;
  /** Versions of which an event tells; each but the first when not given. */
  told?: (part: Part & Seen) => number[];
}

/** Posting that must be there. */
interface Wanted<Kind extends PostingKind> {
  kind: Kind;
  step?: string;
  legs: AnyLeg[];
}

/** Fields that are read of every resource beside those of its rule. */
export interface Seen extends Common {
  _id: string;
  connector: string;
  version: number;
  updated_at: string;
  /** Count of a payment's refunds. */
  refunded?: number;
  /** Payment of a refund. */
  payment_id?: string;
}

const SEEN = ['connector', 'version', 'updated_at', 'refunded', 'payment_id'];

/** Resources that were compared in one snapshot. */
export interface Page {
  rows: number;
  last: Pick<Seen, '_id' | 'updated_at'> | undefined;
  differences: Difference[];
}

/** Check of the resources of one kind. */
export interface ResourceCheck {
  kind: CallbackResource;
  collection: string;
  /** Kinds of its postings. */
  postings: ReadonlySet<string>;
  /** Finds resources, and compares each with its postings, events and relations. */
  page: (read: Read, filter: Document, options: FindOptions) => Promise<Page>;
}

/** Compares resources with others of which they tell. */
export type Relations = (read: Read, rows: readonly Seen[]) => Promise<Difference[]>;

/** Versions that a resource can have; more than its states, and a bound for what is read. */
const VERSIONS_MAX = 100;

/** Check by a rule: a resource, the postings that its state calls for, and the event of each move. */
export function resourceCheck<Part extends Common, Kind extends PostingKind>(
  kind: CallbackResource,
  rule: ResourceRule<Part, Kind>,
  relations: Relations = async () => [],
): ResourceCheck {
  const { collection, fields, legs } = rule;
  const projection = Object.fromEntries([...fields, ...SEEN].map((field) => [field, 1]));
  const kinds = Object.keys(legs);
  const page = async (read: Read, filter: Document, options: FindOptions): Promise<Page> => {
    const rows = await all(read<Part & Seen>(collection, filter, { ...options, projection }));
    const ids = rows.map(({ _id }) => _id);
    const posted = read<PostingRow>('ledger_postings', {
      resource_id: { $in: ids },
      kind: { $in: kinds },
    });
    const byResource = new Map<string, PostingRow[]>(ids.map((id) => [id, []]));
    for await (const posting of posted) byResource.get(posting.resource_id)?.push(posting);
    const differences = [
      ...rows.flatMap((row) => compareResource(rule, row, byResource.get(row._id) ?? [])),
      ...(await missingEvents(read, kind, rows, rule.told ?? everyMove)),
      ...(await relations(read, rows)),
    ];
    return { rows: rows.length, last: rows.at(-1), differences };
  };
  return { kind, collection, postings: new Set(kinds), page };
}

/** Pure: differences between the postings that the state calls for and those that are there. */
function compareResource<Part extends Common, Kind extends PostingKind>(
  { postings: byState, legs, steps, book = bookId }: ResourceRule<Part, Kind>,
  resource: Part & Seen,
  postings: readonly PostingRow[],
): Difference[] {
  const { _id, status } = resource;
  const states = new Map<string, Called<Part, Kind>>(Object.entries(byState));
  const called = states.get(status);
  if (called === undefined) return [difference('status_unknown', _id, 'status', null, status)];
  const kinds = typeof called === 'function' ? called(resource) : called;
  const wanted = kinds.flatMap((kind): Wanted<Kind>[] =>
    steps === undefined
      ? [{ kind, legs: legs[kind](resource) }]
      : steps(resource, kind).map((each) => ({ kind, ...each })),
  );
  const matched = new Set<string>();
  const differences = wanted.flatMap(({ kind, step, legs: each }): Difference[] => {
    const expected = describe(book(resource), each);
    const found = postings.find((posting) => posting.kind === kind && posting.step === step);
    const part = step === undefined ? kind : `${kind}:${step}`;
    if (found === undefined) return [difference('posting_missing', _id, part, expected, null)];
    matched.add(found._id);
    const is = describe(found.book, found.legs);
    return unlessSame('posting_differs', _id, found._id, expected, is);
  });
  const extra = postings.filter((posting) => !matched.has(posting._id));
  return [
    ...differences,
    ...extra.map(({ _id: id, book, legs: found }) =>
      difference('posting_extra', _id, id, null, describe(book, found)),
    ),
  ];
}

/** Versions of a resource that begins without an event, at version 1, and tells of every move. */
function everyMove({ version }: Seen): number[] {
  const last = Math.min(version, VERSIONS_MAX);
  return Array.from({ length: Math.max(0, last - 1) }, (_, before) => before + 2);
}

/** Tells versions without their event. */
async function missingEvents<Row extends Seen>(
  read: Read,
  kind: CallbackResource,
  rows: readonly Row[],
  told: (row: Row) => number[],
): Promise<Difference[]> {
  const wanted = new Map<string, { _id: string; version: number }>();
  for (const row of rows) {
    const { _id } = row;
    for (const version of told(row)) wanted.set(eventId(kind, _id, version), { _id, version });
  }
  const ids = { _id: { $in: [...wanted.keys()] } };
  const there = read<{ _id: string }>('events', ids, { projection: { _id: 1 } });
  for await (const { _id } of there) wanted.delete(_id);
  return [...wanted].map(([event, { _id, version }]) =>
    difference('event_missing', _id, `version ${version}`, event, null),
  );
}

/** Text of legs, sorted, since their order does not matter, and of their book. */
function describe(book: string, legs: PostingRow['legs'] = []): string {
  const each = legs.map(({ account, amount }) => `${account} ${amount}`).sort();
  return `${each.join(', ')} in ${book}`;
}
