import { Refusal } from '../domain/errors';
import type { Connectors } from '../routing';
import { type RoutingDeps, readAssigned } from './banks/routing/read';

/** An account that called counts as a neighbor for this time. */
const NEIGHBOR_MS = 10_000;
/** Calls of one kind that wait for an account. */
const WAITING_MAX = 50;
/** Callers have gone by then. */
const WAIT_MS_MAX = 20_000;
/** Share of the creates that stays free for holders of less than a fair share. */
const RESERVED_SHARE = 0.2;
/** Share of the creates of an account that has neighbors. */
const NEIGHBORLY_SHARE = 1 / 16;

/** Calls that begin together after a pause, next to others. */
const BURST = 3;

interface Share {
  /** Calls at once. */
  alone: number;
  nextToOthers: number;
  /** Next to others, calls begin evenly over so many times the time that they take. */
  spread?: number;
  /** Estimate of that time until calls have ended: as of a slow bank, so that a burst begins slowly. */
  expectedMs?: number;
}

const always = (atOnce: number): Share => ({ alone: atOnce, nextToOthers: atOnce });

/** Calls of an account that run at once, next to its creates. */
const LIMITS = {
  /** A callback, and the steps of a workflow. */
  simulation: { alone: 8, nextToOthers: 1, spread: 2, expectedMs: 200 },
  /** A webhook that the merchant asks for. */
  delivery: { alone: 8, nextToOthers: 1, spread: 2, expectedMs: 50 },
  /** All of them write one audit log: more would meet each other's locks. */
  change: always(2),
  /** Less than a third of the connections to MongoDB. */
  read: always(15),
  /** In both environments and with the owners', two thirds of the dashboard's connections. */
  visit: always(2),
  /** Owners can remove each other member, so they wait for none. */
  owner_visit: always(2),
  /** Their acts that make an account safer wait for none of their other visits. */
  owner_rescue: always(1),
} as const;

export type WorkKind = 'create' | keyof typeof LIMITS;

interface Caller {
  account_id: string;
  livemode: boolean;
  kind: WorkKind;
  /** Undefined when no bank, or only one, serves the environment. */
  connector?: string | undefined;
}

/** @throws Refusal 503 `temporarily_unavailable`; nothing was done */
export type RunInShare = <T>(caller: Caller, work: () => Promise<T>) => Promise<T>;

/** Calls of one kind of an account, of creates for one connector. */
interface Line extends Pick<Caller, 'account_id' | 'kind' | 'connector'> {
  active: number;
  /** Each begins a call, in order. */
  waiting: (() => void)[];
  averageMs: number;
  nextAt: number;
  timer: NodeJS.Timeout | undefined;
}

/**
 * Keeps an account to its share of an API process: it waits for its own calls, 20 seconds and
 * behind 50 of them at most. Waiting accounts begin one after the other.
 * @param creates at once in each environment
 * @see docs/operations.md#overload
 */
export function createShares(creates: number, now = () => performance.now()): RunInShare {
  const pools = { live: createPool(creates, now), sandbox: createPool(creates, now) };
  return async ({ livemode, ...caller }, work) => {
    const leave = await (livemode ? pools.live : pools.sandbox)(caller);
    if (leave === null) {
      throw new Refusal(
        'temporarily_unavailable',
        'Too many calls of this account are under way. Nothing was done: try again, a create with the same Idempotency-Key.',
      );
    }
    try {
      return await work();
    } finally {
      leave();
    }
  };
}

function createPool(atOnce: number, now: () => number) {
  /** By kind, account and connector, until the account has been quiet. */
  const lines = new Map<string, Line>();
  /** Those of them that wait; that which has begun a call longest ago comes first. */
  const order = new Set<Line>();
  /** Times of the last call, the earliest first. */
  const calledAt = new Map<string, number>();
  const accounts = createCount();
  const connectors = createCount();
  const limits: Record<WorkKind, Share> = {
    ...LIMITS,
    create: {
      alone: atOnce,
      nextToOthers: Math.max(1, Math.floor(atOnce * NEIGHBORLY_SHARE)),
      spread: 1,
      expectedMs: 2_000,
    },
  };

  const dropQuiet = (): void => {
    const before = calledAt.size;
    for (const [account_id, at] of calledAt) {
      if (now() - at < NEIGHBOR_MS) break;
      calledAt.delete(account_id);
    }
    if (calledAt.size === before) return;
    for (const [name, { account_id, active, waiting }] of lines) {
      if (active + waiting.length === 0 && !calledAt.has(account_id)) lines.delete(name);
    }
  };
  const hasNeighbors = ({ account_id }: Line) => calledAt.size > (calledAt.has(account_id) ? 1 : 0);
  const mayBegin = (line: Line): boolean => {
    const { account_id, kind, connector, active } = line;
    const max = limits[kind][hasNeighbors(line) ? 'nextToOthers' : 'alone'];
    if (kind !== 'create') return active < max;
    const taken = accounts.total();
    if (taken >= atOnce || accounts.count(account_id) >= max) return false;
    return (
      taken < atOnce * (1 - RESERVED_SHARE) ||
      (accounts.isBelowShare(account_id, atOnce) &&
        (connector === undefined || connectors.isBelowShare(connector, atOnce)))
    );
  };
  const change = (line: Line, by: 1 | -1): void => {
    line.active += by;
    if (line.kind !== 'create') return;
    accounts.add(line.account_id, by);
    if (line.connector !== undefined) connectors.add(line.connector, by);
  };
  /** Holds a line back while its next call would be early. @returns whether it does */
  const holdBack = (line: Line): boolean => {
    const { spread, nextToOthers } = limits[line.kind];
    if (spread === undefined || !hasNeighbors(line)) return false;
    const eachMs = (spread * line.averageMs) / nextToOthers;
    const at = Math.max(line.nextAt, now() - eachMs * (BURST - 1));
    if (at <= now()) {
      line.nextAt = at + eachMs;
      return false;
    }
    line.timer ??= setTimeout(() => {
      line.timer = undefined;
      startReady();
    }, at - now());
    return true;
  };
  const startReady = (): void => {
    dropQuiet();
    for (const line of order) {
      if (!mayBegin(line) || holdBack(line)) continue;
      change(line, 1);
      line.waiting.shift()?.();
      // The loop comes back to it after all others.
      order.delete(line);
      if (line.waiting.length > 0) order.add(line);
    }
  };

  /** @returns null after too long, or where too many wait */
  return (caller: Omit<Caller, 'livemode'>): Promise<(() => void) | null> => {
    const { account_id, kind, connector } = caller;
    calledAt.delete(account_id);
    calledAt.set(account_id, now());
    const name = [kind, account_id, connector].join(' ');
    const fresh = { active: 0, waiting: [], nextAt: 0, timer: undefined };
    const { expectedMs: averageMs = 0 } = limits[kind];
    const line: Line = lines.get(name) ?? { account_id, kind, connector, averageMs, ...fresh };
    lines.set(name, line);
    if (line.waiting.length >= WAITING_MAX) return Promise.resolve(null);
    return new Promise((resolve) => {
      const begin = () => {
        clearTimeout(timer);
        const began = now();
        resolve(() => {
          change(line, -1);
          line.averageMs = (3 * line.averageMs + now() - began) / 4;
          startReady();
        });
      };
      const timer = setTimeout(() => {
        line.waiting.splice(line.waiting.indexOf(begin), 1);
        if (line.waiting.length === 0) order.delete(line);
        resolve(null);
      }, WAIT_MS_MAX);
      line.waiting.push(begin);
      order.add(line);
      startReady();
    });
  };
}

function createCount() {
  const held = new Map<string, number>();
  let total = 0;
  return {
    total: () => total,
    count: (name: string): number => held.get(name) ?? 0,
    add: (name: string, by: 1 | -1): void => {
      total += by;
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

type CreateDeps = RoutingDeps & { connectors: Pick<Connectors, 'names'>; runInShare: RunInShare };

interface Request {
  caller: Pick<Caller, 'account_id' | 'livemode'>;
  fields: unknown;
}

/** Creates in the share of the account, and of the connector that its fields name. */
export async function createInShare<T>(
  deps: CreateDeps,
  request: Request,
  create: () => Promise<T>,
): Promise<T> {
  const { account_id, livemode } = request.caller;
  const connector = await findAwaitedBank(deps, request);
  return await deps.runInShare({ account_id, livemode, kind: 'create', connector }, create);
}

/** Finds the bank that a create waits for, where several serve the environment. */
async function findAwaitedBank(
  deps: CreateDeps,
  { caller, fields }: Request,
): Promise<string | undefined> {
  if (!caller.livemode || deps.connectors.names.length <= 2) return undefined;
  const { method, asset, network, currency } = Object(fields);
  // A refund waits for no bank, nor do fields that are refused: the create refuses them.
  if (method === undefined && asset === undefined) return undefined;
  const name = method ?? `${asset}_${network}`.toLowerCase();
  const findConnector = await readAssigned(deps, caller);
  return findConnector(String(name), String(currency));
}
