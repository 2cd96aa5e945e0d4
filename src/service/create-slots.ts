import { Refusal } from '../domain/errors';
import type { Connectors } from '../routing';
import { createWindows } from './account-windows';
import { createQueues, type QueueLimits } from './create-queues';
import { type RoutingDeps, readAssigned } from './routing/read';

/** Share that stays free for holders of less than a fair share. */
const RESERVED_SHARE = 0.2;
/** Share of an account that has neighbors. */
const NEIGHBORLY_SHARE = 1 / 16;
/** Each is a callback and the steps of a workflow. */
const SIMULATIONS: QueueLimits = {
  alone: 8,
  nextToOthers: 1,
  burst: 1,
  waitingMax: 1_000,
  waitMsMax: 60_000,
  expectedMs: 200,
};
/** Callers have gone by then. */
const CREATE_WAIT_MS_MAX = 20_000;
/** Estimate as of a slow bank, so that a burst begins slowly. */
const CREATE_MS = 2_000;

interface Holder {
  account_id: string;
  livemode: boolean;
  /** Undefined when no bank, or only one, serves the environment. */
  connector: string | undefined;
  simulates?: true;
}

export type CreateSlots = <T>(holder: Holder, work: () => Promise<T>) => Promise<T>;

/**
 * Refuses creates beyond the limit at once, per environment. Once most slots are taken, only
 * accounts and connectors below their fair share get another, so that a slow bank or a mass payout
 * leaves slots for the others.
 * @throws Refusal 503 `temporarily_unavailable`
 * @see docs/operations.md#overload
 */
export function createSlots(atOnce: number): CreateSlots {
  const live = createPool(atOnce);
  const sandbox = createPool(atOnce);
  return async ({ livemode, ...holder }, work) => {
    const slot = await (livemode ? live : sandbox).enter(holder);
    if (slot === null) {
      throw new Refusal(
        'temporarily_unavailable',
        'Too many creates are under way. Nothing was done: try again, with the same Idempotency-Key.',
      );
    }
    try {
      const result = await work();
      slot.answered();
      return result;
    } catch (error) {
      if (error instanceof Refusal && error.code === 'temporarily_unavailable') slot.unanswered();
      else slot.answered();
      throw error;
    } finally {
      slot.leave();
    }
  };
}

/** Finds the bank that a create waits for, where several serve the environment. */
export async function findSlowPart(
  deps: RoutingDeps & { connectors: Pick<Connectors, 'names'> },
  fields: unknown,
  owner: { account_id: string; livemode: boolean },
): Promise<string | undefined> {
  if (!owner.livemode || deps.connectors.names.length <= 2) return undefined;
  const { method, asset, network, currency } = Object(fields);
  // A refund waits for no bank.
  if (method === undefined && asset === undefined) return undefined;
  const name = method ?? `${asset}_${network}`.toLowerCase();
  const findConnector = await readAssigned(deps, owner);
  return findConnector(String(name), String(currency));
}

interface Slot {
  answered(): void;
  /** The workers did not finish in time. */
  unanswered(): void;
  leave(): void;
}

function createPool(atOnce: number) {
  let taken = 0;
  const accounts = createCount();
  const connectors = createCount();
  const windows = createWindows(atOnce);
  const queues = createQueues({
    create: {
      alone: atOnce,
      nextToOthers: Math.max(1, Math.floor(atOnce * NEIGHBORLY_SHARE)),
      burst: 3,
      waitingMax: atOnce,
      waitMsMax: CREATE_WAIT_MS_MAX,
      expectedMs: CREATE_MS,
    },
    simulation: SIMULATIONS,
  });
  const take = ({ account_id, connector }: Omit<Holder, 'livemode'>): Slot | null => {
    if (!windows.isOpen(account_id, accounts.count(account_id))) return null;
    const isFree = taken < atOnce * (1 - RESERVED_SHARE);
    const isFair =
      accounts.isBelowShare(account_id, atOnce) &&
      (connector === undefined || connectors.isBelowShare(connector, atOnce));
    if (taken >= atOnce || !(isFree || isFair)) return null;
    const change = (by: 1 | -1) => {
      taken += by;
      accounts.add(account_id, by);
      if (connector !== undefined) connectors.add(connector, by);
    };
    change(1);
    return {
      answered: () => windows.grow(account_id),
      unanswered: () => windows.shrink(account_id, accounts.count(account_id)),
      leave: () => change(-1),
    };
  };
  return {
    /** Waits for others of the account. @returns null when there is no slot */
    enter: async (holder: Omit<Holder, 'livemode'>): Promise<Slot | null> => {
      const kind = holder.simulates === true ? 'simulation' : 'create';
      const leave = await queues.enter(holder.account_id, kind);
      if (leave === null) return null;
      const slot = take(holder);
      if (slot === null) leave(false);
      return slot && { ...slot, leave: () => [slot.leave(), leave(true)] };
    },
  };
}

function createCount() {
  const held = new Map<string, number>();
  return {
    count: (name: string): number => held.get(name) ?? 0,
    add: (name: string, by: 1 | -1): void => {
      const count = (held.get(name) ?? 0) + by;
      if (count > 0) held.set(name, count);
      else held.delete(name);
    },
    /** Whether a name holds less than its part, if another one came as well. */
    isBelowShare: (name: string, atOnce: number): boolean => {
      const names = held.size + (held.has(name) ? 0 : 1);
      return (held.get(name) ?? 0) < Math.max(1, Math.floor(atOnce / (names + 1)));
    },
  };
}
