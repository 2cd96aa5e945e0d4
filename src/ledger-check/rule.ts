import type { Document, FindOptions } from 'mongodb';
import { eventId } from '../base/ids';
import type { CallbackResource } from '../domain/banks/callback';
import type { Direction, Movement } from '../domain/banks/movement';
import { omitUndefined } from '../domain/defined';
import { bookId, type EntryKind, type EntryLine } from '../ledger/entries';
import {
  buildMovementHeld,
  buildMovementResolved,
  type MovingKind,
} from '../ledger/resource-entries';
import type { DisputeDocument } from '../store/disputes';
import { type MovementDocument, toMovement } from '../store/movements';
import type { PaymentDocument } from '../store/payments';
import type { ResourceDocument } from '../store/resource';
import { RETENTION_RUN, type ScheduleRun } from '../store/schedule-runs';
import { compareValues, type Difference, difference, type EntryRow } from './compare';
import { type Read, readAll } from './snapshot';

type CommonFields = Pick<PaymentDocument, 'account_id' | 'livemode' | 'currency'> & {
  status: string;
};

export type ExpectedKinds<Part, Kind> = readonly Kind[] | ((part: Part) => readonly Kind[]);

/** Fields that a rule may read, since each part has them. */
export const COMMON = ['account_id', 'livemode', 'currency', 'status'] as const;

export interface ResourceRule<Part extends CommonFields, Kind extends EntryKind> {
  collection: string;
  fields: readonly (keyof Part & string)[];
  /** Kinds of entries in each state. */
  entries: Record<Part['status'], ExpectedKinds<Part, Kind>>;
  /** Entries of each kind: one of the whole resource, or one of each part. */
  steps: Record<Kind, (part: Part) => ExpectedStep[]>;
  /** Compares further facts of the resource with each other. */
  compare?: (part: Part & ResourceRow) => Difference[];
  /** Transitions that have an event; absent: each but the first. */
  reportedTransitions?: (part: Part & ResourceRow) => number[];
}

export interface ExpectedStep {
  step?: string;
  lines: EntryLine[];
  /** Absent: that of the resource. */
  book?: string;
}

/** Expects one entry of the whole resource. */
export function expectOne(lines: EntryLine[]): ExpectedStep[] {
  return [{ lines }];
}

export interface ResourceRow extends CommonFields {
  _id: string;
  connector: string;
  transition: number;
  created_at: string;
  updated_at: string;
  refunded?: number;
  payment_id?: string;
}

const ROW_FIELDS = [
  'connector',
  'transition',
  'created_at',
  'updated_at',
  'refunded',
  'payment_id',
];

export interface Page {
  rows: number;
  last: Pick<ResourceRow, '_id' | 'updated_at'> | undefined;
  differences: Difference[];
}

export interface ResourceCheck {
  collection: string;
  entryKinds: ReadonlySet<string>;
  page: (read: Read, filter: Document, options: FindOptions) => Promise<Page>;
}

type Relations = (read: Read, rows: readonly ResourceRow[]) => Promise<Difference[]>;

/** Bounds what is read; more than a resource has states. */
const TRANSITIONS_MAX = 100;

export function resourceCheck<Part extends CommonFields, Kind extends EntryKind>(
  kind: CallbackResource,
  rule: ResourceRule<Part, Kind>,
  relations: Relations = async () => [],
): ResourceCheck {
  const { collection, fields, steps } = rule;
  const projection = Object.fromEntries([...fields, ...ROW_FIELDS].map((field) => [field, 1]));
  const kinds = Object.keys(steps);
  const page = async (read: Read, filter: Document, options: FindOptions): Promise<Page> => {
    const pageRows = read<Part & ResourceRow>(collection, filter, { ...options, projection });
    const rows = await withDisputes(read, await withMovements(read, await readAll(pageRows)));
    const ids = rows.map(({ _id }) => _id);
    const entryFilter = { resource_id: { $in: ids }, kind: { $in: kinds } };
    const entryRows = read<EntryRow>('journal_entries', entryFilter);
    const byResource = new Map<string, EntryRow[]>(ids.map((id) => [id, []]));
    for await (const entry of entryRows) byResource.get(entry.resource_id)?.push(entry);
    const differences = [
      ...rows.flatMap((row) => compareResource(rule, row, byResource.get(row._id) ?? [])),
      ...rows.flatMap((row) => rule.compare?.(row) ?? []),
      ...(await missingEvents(read, kind, rows, rule.reportedTransitions)),
      ...(await relations(read, rows)),
    ];
    return { rows: rows.length, last: rows.at(-1), differences };
  };
  return { collection, entryKinds: new Set(kinds), page };
}

function compareResource<Part extends CommonFields, Kind extends EntryKind>(
  { entries: byState, steps }: ResourceRule<Part, Kind>,
  resource: Part & ResourceRow,
  entries: readonly EntryRow[],
): Difference[] {
  const { _id, status } = resource;
  const states = new Map<string, ExpectedKinds<Part, Kind>>(Object.entries(byState));
  const expectedKinds = states.get(status);
  if (expectedKinds === undefined)
    return [difference('status_unknown', _id, 'status', null, status)];
  const kinds = typeof expectedKinds === 'function' ? expectedKinds(resource) : expectedKinds;
  const expectedEntries = kinds.flatMap((kind) =>
    steps[kind](resource).map((step) => ({ kind, ...step })),
  );
  const matched = new Set<string>();
  const differences = expectedEntries.flatMap((expectedEntry): Difference[] => {
    const { kind, step, lines, book = bookId(resource) } = expectedEntry;
    const expected = describeLines(book, lines);
    const match = entries.find((entry) => entry.kind === kind && entry.step === step);
    const part = step === undefined ? kind : `${kind}:${step}`;
    if (match === undefined) return [difference('posting_missing', _id, part, expected, null)];
    matched.add(match._id);
    const actual = describeLines(match.book, match.lines);
    return compareValues('posting_differs', _id, match._id, expected, actual);
  });
  const extra = entries.filter((entry) => !matched.has(entry._id));
  return [
    ...differences,
    ...extra.map(({ _id: id, book, lines: foundLines }) =>
      difference('posting_extra', _id, id, null, describeLines(book, foundLines)),
    ),
  ];
}

async function missingEvents<Row extends ResourceRow>(
  read: Read,
  kind: CallbackResource,
  rows: readonly Row[],
  listTransitions: ((row: Row) => number[]) | undefined,
): Promise<Difference[]> {
  const [retention] = await readAll(read<ScheduleRun>('schedule_runs', { _id: RETENTION_RUN }));
  const { events_before = '' } = retention ?? {};
  const expectedEvents = new Map<string, { _id: string; transition: number }>();
  for (const row of rows) {
    if (row.created_at < events_before) continue;
    const { _id } = row;
    const last = Math.min(row.transition, TRANSITIONS_MAX);
    // The first has no event.
    const all = Array.from({ length: Math.max(0, last - 1) }, (_, before) => before + 2);
    for (const transition of listTransitions?.(row) ?? all) {
      expectedEvents.set(eventId(kind, _id, transition), { _id, transition });
    }
  }
  const ids = { _id: { $in: [...expectedEvents.keys()] } };
  const eventRows = read<{ _id: string }>('events', ids, { projection: { _id: 1 } });
  for await (const { _id } of eventRows) expectedEvents.delete(_id);
  return [...expectedEvents].map(([event, { _id, transition }]) =>
    difference('event_missing', _id, `transition ${transition}`, event, null),
  );
}

function describeLines(book: string, lines: EntryRow['lines'] = []): string {
  const each = lines.map(({ account, amount }) => `${account} ${amount}`).sort();
  return `${each.join(', ')} in ${book}`;
}

export type CheckedDispute = Pick<
  DisputeDocument,
  '_id' | 'kind' | 'status' | 'transfers' | 'amount'
>;

/** Adds the disputes of each payment. */
async function withDisputes<Row extends { _id: string }>(
  read: Read,
  rows: readonly Row[],
): Promise<(Row & { disputes: CheckedDispute[] })[]> {
  const byPayment = new Map<string, CheckedDispute[]>(rows.map(({ _id }) => [_id, []]));
  const filter = { payment_id: { $in: [...byPayment.keys()] } };
  for await (const dispute of read<DisputeDocument>('disputes', filter)) {
    byPayment.get(dispute.payment_id)?.push(dispute);
  }
  return rows.map((row) => ({ ...row, disputes: byPayment.get(row._id) ?? [] }));
}

export interface WithMovements {
  movements: readonly Movement[];
}

type Moved = Pick<ResourceDocument, 'account_id' | 'livemode' | 'connector' | 'currency'> &
  WithMovements & { balance_account?: string };

/** Lists what is in suspense, or was, in the book of its currency. */
export function listHeld(kind: MovingKind, { movements, ...owner }: Moved): ExpectedStep[] {
  return movements.flatMap((movement): ExpectedStep[] => {
    if (movement.reason === null) return [];
    const { entry } = buildMovementHeld(kind, { ...owner, _id: '' }, movement, '');
    return [{ step: movement.id, lines: [...entry.lines], book: bookId(entry) }];
  });
}

/** Lists what has left suspense by entries of its own. */
export function listResolved(kind: MovingKind, { movements, ...owner }: Moved): ExpectedStep[] {
  const resource = { ...owner, _id: '' };
  return movements.flatMap(({ resolutions, ...movement }) =>
    resolutions.map((resolution, index): ExpectedStep => {
      const before = { ...movement, resolutions: resolutions.slice(0, index) };
      const { entry } = buildMovementResolved(kind, resource, before, resolution, { at: '' });
      const { step, lines } = entry;
      return { ...omitUndefined({ step }), lines: [...lines], book: bookId(entry) };
    }),
  );
}

/** Smallest units that entries of the resource took out of suspense. */
export function sumFromSuspense(movements: readonly Movement[], direction: Direction): bigint {
  return movements
    .filter((movement) => movement.direction === direction && movement.reason !== null)
    .reduce((sum, { applied }) => sum + BigInt(applied), 0n);
}

export type CheckedMovement = Movement & Pick<MovementDocument, 'entry' | 'dispute'>;

/** Adds the movements of each, the oldest first. */
export async function withMovements<Row extends { _id: string }>(
  read: Read,
  rows: readonly Row[],
): Promise<(Row & { movements: CheckedMovement[] })[]> {
  const byResource = new Map<string, CheckedMovement[]>(rows.map(({ _id }) => [_id, []]));
  const filter = { resource_id: { $in: [...byResource.keys()] } };
  const movements = read<MovementDocument>('bank_movements', filter, { sort: { order: 1 } });
  for await (const row of movements) {
    const { entry, dispute } = row;
    const checked = { ...toMovement(row), entry, ...omitUndefined({ dispute }) };
    byResource.get(row.resource_id ?? '')?.push(checked);
  }
  return rows.map((row) => ({ ...row, movements: byResource.get(row._id) ?? [] }));
}
