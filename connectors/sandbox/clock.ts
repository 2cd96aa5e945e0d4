import {
  type ClockStop,
  joinStops,
  readAccountTime,
  toAccountTime,
} from '../../src/domain/account/clock';
import type { CallbackResource } from '../../src/domain/callback/callback';
import { LIFECYCLES } from '../../src/lifecycles';
import type { Stores } from '../../src/store';
import type { InboxStores } from '../contract/callbacks';
import type { BankClockAdvance } from '../contract/clock';

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

/** Rows wait for seconds, so there are few. */
const ROWS_MAX = 1_000;

export async function advanceBankClock(
  deps: BankClockDeps,
  advance: BankClockAdvance,
): Promise<ClockStop> {
  const stops = await Promise.all(deps.waiting.map((store) => advanceStore(deps, store, advance)));
  deps.wake();
  return joinStops(stops);
}

async function advanceStore(
  { product, now }: BankClockDeps,
  store: WaitingStore,
  advance: BankClockAdvance,
): Promise<ClockStop> {
  const rows = await listOwn(product, await store.listPending(ROWS_MAX), advance.account_id);
  if (rows.length === 0) return { due_at_ms: null, waiting: [] };
  await store.bringForward(
    rows.map(({ _id }) => _id),
    advance,
  );
  const ids = new Set(rows.map(({ _id }) => _id));
  const moved = (await store.listPending(ROWS_MAX)).filter(({ _id }) => ids.has(_id));
  const at = now().getTime();
  return joinStops(
    moved.map(({ _id, due_at }) => {
      const due_ms = due_at?.getTime() ?? at;
      if (due_ms <= at) return { due_at_ms: null, waiting: [_id] };
      return { due_at_ms: due_ms + advance.offset_ms, waiting: [] };
    }),
  );
}

async function listOwn<W extends Waiting>(
  stores: InboxStores,
  rows: readonly W[],
  account_id: string,
): Promise<W[]> {
  const owners = await Promise.all(
    rows.map(({ resource, resource_id }) => LIFECYCLES[resource].get(stores, resource_id)),
  );
  return rows.filter((_row, i) => owners[i]?.account_id === account_id);
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
