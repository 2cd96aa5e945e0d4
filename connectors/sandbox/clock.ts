import type { CallbackResource } from '../../src/domain/banks/callback';
import { joinStops, readAccountTime, toAccountTime } from '../../src/domain/merchants/clock';
import { LIFECYCLES } from '../../src/lifecycles';
import type { Stores } from '../../src/store';
import type { InboxStores } from '../contract/callbacks';
import type { BankClockAdvance, BankClockStop } from '../contract/clock';

/** Row that is due in real time. */
interface Waiting {
  _id: string;
  resource: CallbackResource;
  resource_id: string;
  due_at: Date | null;
}

interface WaitingStore {
  listPending: (limit: number) => Promise<Waiting[]>;
  bringForward: (ids: string[], advance: BankClockAdvance) => Promise<unknown>;
}

export interface BankClockDeps {
  product: InboxStores;
  waiting: readonly WaitingStore[];
  now: () => Date;
  wake: () => void;
}

/** Uses the real time before the resource is stored. */
export type TimeReader = (about: Pick<Waiting, 'resource' | 'resource_id'>) => Promise<Date>;

export function createTimeReader(
  stores: InboxStores & Pick<Stores, 'accounts'>,
  now: () => Date,
): TimeReader {
  return async ({ resource, resource_id }) => {
    const owner = await LIFECYCLES[resource].get(stores, resource_id);
    if (owner === null || owner.livemode) return now();
    // An older copy would be behind a clock that has just advanced.
    const account = await stores.accounts.get(owner.account_id);
    return toAccountTime(readAccountTime(owner.livemode, account?.clock), now());
  };
}

/** Time after which a row that was handed out comes again unless it has arrived. */
export const LEASE_MS = 5_000;

/** Rows wait for seconds, so there are few. */
const ROWS_MAX = 1_000;

export async function advanceBankClock(
  deps: BankClockDeps,
  advance: BankClockAdvance,
): Promise<BankClockStop> {
  const stops = await Promise.all(deps.waiting.map((store) => advanceStore(deps, store, advance)));
  deps.wake();
  const joined = joinStops(stops);
  const next = stops.filter(({ due_at_ms }) => due_at_ms === joined.due_at_ms);
  return {
    ...joined,
    reporting: stops.flatMap(({ reporting }) => reporting),
    awaited: next.flatMap(({ awaited }) => awaited),
  };
}

async function advanceStore(
  { product, now }: BankClockDeps,
  store: WaitingStore,
  advance: BankClockAdvance,
): Promise<BankClockStop> {
  const all = await store.listPending(ROWS_MAX);
  const owners = await Promise.all(
    all.map(({ resource, resource_id }) => LIFECYCLES[resource].get(product, resource_id)),
  );
  const rows = all.filter((_row, at) => owners[at]?.account_id === advance.account_id);
  const ids = rows.map(({ _id }) => _id);
  if (rows.length > 0) await store.bringForward(ids, advance);
  const pending = rows.length === 0 ? [] : await store.listPending(ROWS_MAX);
  const at = now().getTime();
  const dues = new Map(pending.map(({ _id, due_at }) => [_id, due_at?.getTime() ?? at]));
  const later = ids.flatMap((id) => dues.get(id) ?? []).filter((due_ms) => due_ms > at);
  const next_ms = later.reduce(
    (first, due_ms) => Math.min(first, due_ms),
    Number.POSITIVE_INFINITY,
  );
  // One that is not pending any more was sent just now.
  const found = rows.map(({ _id, resource, resource_id }) => ({
    due_ms: dues.get(_id) ?? at,
    report: [_id, LIFECYCLES[resource].workflowId(resource_id)] as [string, string],
  }));
  return {
    due_at_ms: later.length === 0 ? null : next_ms + advance.offset_ms,
    waiting: ids.filter((id) => (dues.get(id) ?? Number.POSITIVE_INFINITY) <= at),
    reporting: found.filter(({ due_ms }) => due_ms <= at + LEASE_MS).map(({ report }) => report),
    awaited: found.filter(({ due_ms }) => due_ms === next_ms).map(({ report }) => report[1]),
  };
}

/** A repeat changes nothing. */
export function bringForward({ offset_ms, from_ms }: BankClockAdvance) {
  const before = { $ifNull: ['$clock_ms', from_ms] };
  const ahead = { $max: [0, { $subtract: [offset_ms, before] }] };
  return {
    $set: {
      due_at: { $subtract: ['$due_at', ahead] },
      clock_ms: { $max: [offset_ms, before] },
    },
  };
}
