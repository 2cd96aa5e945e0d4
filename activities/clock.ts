import { Context, heartbeat } from '@temporalio/activity';
import { type Client, WorkflowNotFoundError, WorkflowUpdateFailedError } from '@temporalio/client';
import {
  type ClockAdvance,
  type ClockStop,
  type ClockTarget,
  joinStops,
} from '../src/domain/account/clock';
import { KINDS, LIFECYCLES } from '../src/lifecycles';
import { tryDeliveryNow } from '../src/service/events/deliveries';
import type { Stores } from '../src/store';
import { isTimeout } from '../src/temporal/deadline';
import { reportProgress } from './shared/progress';

export interface ClockDeps {
  stores: Stores;
  temporal: Client;
  now: () => Date;
}

interface Offset {
  account_id: string;
  offset_ms: number;
}

export type ClockActivities = ReturnType<typeof createClockActivities>;

const BATCH = 20;
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
    /** Each try asks all: those that were silent while a worker stopped may answer now. */
    advanceResources: async ({ account_id, offset_ms }: Offset): Promise<ClockStop> => {
      const stops: ClockStop[] = [];
      for (const kind of KINDS) {
        const { pageOf, workflowId } = LIFECYCLES[kind];
        let ids: string[] = [];
        do {
          reportProgress();
          ids = await pageOf(deps.stores, account_id, ids.at(-1) ?? '', BATCH);
          const advances = ids.map((id) =>
            advanceResource(deps.temporal, workflowId(id), id, offset_ms),
          );
          stops.push(...(await waitForAll(advances)));
        } while (ids.length === BATCH);
      }
      return joinStops(stops);
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

async function advanceResource(
  temporal: Client,
  workflowId: string,
  id: string,
  offset_ms: number,
): Promise<ClockStop> {
  const handle = temporal.workflow.getHandle(workflowId);
  try {
    const { due_at_ms } = await temporal.withDeadline(Date.now() + ADVANCE_MS, () =>
      handle.executeUpdate<Pick<ClockStop, 'due_at_ms'>, [ClockAdvance]>('advance_clock', {
        args: [{ offset_ms }],
      }),
    );
    return { due_at_ms, waiting: [] };
  } catch (error) {
    // It has ended, or was refused: nothing waits.
    if (error instanceof WorkflowNotFoundError || error instanceof WorkflowUpdateFailedError) {
      return { due_at_ms: null, waiting: [] };
    }
    if (!isTimeout(error)) throw error;
    return { due_at_ms: null, waiting: [id] };
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
