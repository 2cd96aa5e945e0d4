import { Context, heartbeat } from '@temporalio/activity';
import { type Client, WorkflowNotFoundError, WorkflowUpdateFailedError } from '@temporalio/client';
import { inBatches } from '../src/base/batches';
import {
  type ClockAdvance,
  type ClockAsk,
  type ClockPlace,
  type ClockStop,
  type ClockTarget,
  joinStops,
  type ResourceStop,
} from '../src/domain/merchants/clock';
import { KINDS, LIFECYCLES } from '../src/lifecycles';
import { tryDeliveryNow } from '../src/service/events/deliveries';
import type { Stores } from '../src/store';
import { isExhausted, isTimeout } from '../src/temporal/deadline';
import { reportProgress } from './shared/record';

export interface ClockDeps {
  stores: Stores;
  temporal: Client;
  now: () => Date;
}

interface Offset {
  account_id: string;
  offset_ms: number;
}

/** Resources in progress. */
export interface InFlightWalk {
  /** Only those created from then on, ISO 8601, account time. */
  since?: string;
  /** Absent: the beginning. */
  place?: ClockPlace;
}

interface ResourceAdvance extends Offset {
  /** End of the advance, ms ahead of the real time. */
  until_ms: number;
  asks: readonly ClockAsk[];
  walk?: InFlightWalk | undefined;
}

export type ClockActivities = ReturnType<typeof createClockActivities>;

const BATCH = 20;
/** Also silent ones leave time to the activity. */
const PAGE = 100;
/** Others follow at the next stop. */
const PENDING_MAX = 500;
/** Time for a workflow to do what is due; the clock asks again. */
const ADVANCE_MS = 5_000;
/** Well within the heartbeat timeout that the workflow sets. */
const HEARTBEAT_MS = 3_000;

/** Each step is safe to repeat. */
export function createClockActivities(deps: ClockDeps) {
  const { accounts } = deps.stores;
  return {
    beginAdvance: ({ account_id, target }: { account_id: string; target: ClockTarget }) =>
      accounts.beginAdvance(account_id, target),
    storeOffset: ({ account_id, offset_ms }: Offset): Promise<void> =>
      accounts.storeOffset(account_id, offset_ms),
    endAdvance: ({ account_id, behind }: { account_id: string; behind: string[] }): Promise<void> =>
      accounts.endAdvance(account_id, behind),
    /** Asks workflows to follow. A repeat gets the first answer of each. */
    advanceResources: async ({ account_id, asks, walk, ...advance }: ResourceAdvance) => {
      const page = walk && (await listPage(deps.stores, account_id, walk));
      const all = new Map([...(page?.ids.map((id): ClockAsk => [id, 0]) ?? []), ...asks]);
      const stop: ResourceStop = { dues: [], silent: [], place: page?.place ?? null };
      for await (const batch of inBatches(all, BATCH)) {
        reportProgress();
        await waitForAll(batch.map((ask) => advanceResource(deps, ask, advance, stop)));
      }
      return stop;
    },
    /** @param input.tried attempts that were made due a moment ago, and are only waited for */
    advanceDeliveries: (input: Offset & { tried: string[] }) => advanceDeliveries(deps, input),
  };
}

/**
 * Waits for calls that this worker's own workflows may have to answer: they do not while it stops.
 * The SDK may repeat a call beyond its deadline.
 * @throws CancelledFailure as its worker stops
 */
async function waitForAll<T>(calls: readonly Promise<T>[]): Promise<T[]> {
  const timer = setInterval(heartbeat, HEARTBEAT_MS);
  try {
    return await Promise.race([Promise.all(calls), Context.current().cancelled]);
  } finally {
    clearInterval(timer);
  }
}

async function listPage(
  stores: Stores,
  account_id: string,
  { since, place = { kind: 'payment', after: '' } }: InFlightWalk,
): Promise<{ ids: string[]; place: ClockPlace | null }> {
  const found: string[] = [];
  for (const kind of KINDS.slice(KINDS.indexOf(place.kind))) {
    const { pageOf, workflowId } = LIFECYCLES[kind];
    const after = kind === place.kind ? place.after : '';
    const ids = await pageOf(stores, account_id, { after, limit: PAGE - found.length, since });
    found.push(...ids.map(workflowId));
    if (found.length === PAGE) return { ids: found, place: { kind, after: ids.at(-1) ?? after } };
  }
  return { ids: found, place: null };
}

async function advanceResource(
  { temporal, now }: ClockDeps,
  [workflow_id, answers]: ClockAsk,
  { offset_ms, until_ms }: Pick<ResourceAdvance, 'offset_ms' | 'until_ms'>,
  stop: ResourceStop,
): Promise<void> {
  const handle = temporal.workflow.getHandle(workflow_id);
  // Attaches a repeat to the one before: a workflow takes ten updates at a time.
  const updateId = `clock:${until_ms}:${offset_ms}:${answers}`;
  const update = { updateId, args: [{ offset_ms }] as [ClockAdvance] };
  try {
    const { due_at_ms } = await temporal.withDeadline(Date.now() + ADVANCE_MS, () =>
      handle.executeUpdate<Pick<ClockStop, 'due_at_ms'>, [ClockAdvance]>('advance_clock', update),
    );
    const isDueBefore = due_at_ms !== null && due_at_ms <= now().getTime() + until_ms;
    if (isDueBefore) stop.dues.push([workflow_id, due_at_ms]);
  } catch (error) {
    // It has ended, or was refused: nothing waits.
    if (error instanceof WorkflowNotFoundError || error instanceof WorkflowUpdateFailedError) {
      return;
    }
    if (!isTimeout(error) && !isExhausted(error)) throw error;
    stop.silent.push(workflow_id);
  }
}

async function advanceDeliveries(
  { stores, temporal, now }: ClockDeps,
  { account_id, offset_ms, tried }: Offset & { tried: string[] },
): Promise<ClockStop> {
  const accountNow = now().getTime() + offset_ms;
  const pending = await stores.deliveries.listPending(account_id, PENDING_MAX);
  const tries = pending.map(async (row): Promise<ClockStop> => {
    if (row.waiting === true) return { due_at_ms: null, waiting: [] };
    const due_at_ms = Date.parse(row.next_attempt_at ?? '');
    if (due_at_ms > accountNow) return { due_at_ms, waiting: [] };
    if (!tried.includes(row._id)) await tryDeliveryNow(temporal, row);
    return { due_at_ms: null, waiting: [row._id] };
  });
  return joinStops(await waitForAll(tries));
}
