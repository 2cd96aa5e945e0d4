import {
  allHandlersFinished,
  CancellationScope,
  condition,
  continueAsNew,
  defineUpdate,
  proxyActivities,
  setCurrentDetails,
  setHandler,
  sleep,
  workflowInfo,
} from '@temporalio/workflow';
import type { ClockActivities } from '../../activities/clock';
import type { ClockConnectorActivities } from '../../connectors/contract/clock';
import {
  type ClockStart,
  type ClockStop,
  type ClockTarget,
  joinStops,
} from '../../src/domain/account/clock';
import { uncancelled } from '../shared/inbox';
import { bankQueue } from '../shared/instruction';
import { refuse } from '../shared/refusal';

const advance = defineUpdate<void, [ClockTarget]>('advance');

const { beginAdvance, storeOffset, endAdvance, advanceResources, advanceDeliveries } =
  proxyActivities<ClockActivities>({
    startToCloseTimeout: '1 minute',
    // Well below the wait at a stop, so that a lost worker leaves some of it.
    heartbeatTimeout: '10s',
    retry: { initialInterval: '500ms', maximumInterval: '10s' },
  });

/** Longest wait at one stop; then the clock goes on, and names what is behind. */
const STOP_MS_MAX = 20_000;
const LOOK_AGAIN_MS = { first: 100, max: 400 };
/** Each reset of an attempt voids the timer of the one before, which the server fires up to 1 s late. */
const TRY_AGAIN_MS = 5_000;
/** Time to store a create that began before the clock advanced. */
const LINGER_MS = 15_000;
const BEHIND_MAX = 100;

interface Advance {
  target: ClockTarget;
  offset_ms: number;
  behind: Set<string>;
}

interface ClockResume extends ClockStart {
  advance?: { target: ClockTarget; offset_ms: number; behind: string[] };
}

/**
 * Stops at each moment at which something is due, in order, and waits until that is done.
 * @see docs/api.md#sandbox-clock
 */
export function accountClock(start: ClockResume): Promise<void> {
  return CancellationScope.nonCancellable(() => run(start));
}

async function run({ advance: resumed, ...start }: ClockResume): Promise<void> {
  const { account_id } = start;
  let isTaken = resumed !== undefined;
  let current: Advance | undefined =
    resumed === undefined ? undefined : { ...resumed, behind: new Set(resumed.behind) };
  const begin = async (target: ClockTarget) => {
    isTaken = true;
    if (current !== undefined) await condition(() => current === undefined);
    const { offset_ms } = await beginAdvance({ account_id, target });
    current = { target, offset_ms, behind: new Set() };
  };
  setHandler<void, [ClockTarget], typeof advance>(advance, uncancelled(begin), {
    description: 'Moves the clock forward to {"offset_ms": …, "at": …}. Sent by the API.',
    validator: () => {
      if (isTaken) refuse('clock_advancing', 'The clock is still advancing.');
    },
  });
  let reached_ms: number | undefined;
  while (true) {
    if (await condition(() => current !== undefined, LINGER_MS)) {
      if (current === undefined) continue;
      const { target, behind } = current;
      reached_ms = await reach(start, current);
      // Readers see it stand before the workflow learns that this is stored.
      isTaken = false;
      await endAdvance({ account_id, behind: [...behind].slice(0, BEHIND_MAX) });
      setCurrentDetails(`**Stands** since ${target.at}.`);
      current = undefined;
    } else if (reached_ms !== undefined) {
      // What was created with an earlier time meanwhile follows.
      await advanceResources({ account_id, offset_ms: reached_ms });
      reached_ms = undefined;
    } else if (allHandlersFinished()) return;
  }
}

async function reach(start: ClockStart, advancing: Advance): Promise<number> {
  const { target, behind } = advancing;
  const { account_id } = start;
  let stop = await settle(start, advancing.offset_ms, advancing.offset_ms);
  while (advancing.offset_ms < target.offset_ms) {
    const from_ms = advancing.offset_ms;
    const next = stop.due_at_ms === null ? target.offset_ms : stop.due_at_ms - Date.now();
    const to_ms = Math.min(Math.max(next, from_ms), target.offset_ms);
    setCurrentDetails(
      `**Advancing** to ${target.at}: now at ${new Date(Date.now() + to_ms).toISOString()}. At each ` +
        `stop it waits for the connector \`${start.connector}\`, also while that is down.`,
    );
    await storeOffset({ account_id, offset_ms: to_ms });
    stop = await settle(start, to_ms, from_ms);
    advancing.offset_ms = to_ms;
    for (const id of stop.waiting) behind.add(id);
    if (workflowInfo().continueAsNewSuggested && allHandlersFinished()) {
      const rest = { target, offset_ms: to_ms, behind: [...behind].slice(0, BEHIND_MAX) };
      await continueAsNew<typeof accountClock>({ ...start, advance: rest });
    }
  }
  return advancing.offset_ms;
}

async function settle(
  { account_id, connector }: ClockStart,
  offset_ms: number,
  from_ms: number,
): Promise<ClockStop> {
  const until = Date.now() + STOP_MS_MAX;
  const { advanceBankClock } = proxyActivities<ClockConnectorActivities>({
    taskQueue: bankQueue(connector),
    // Without a limit: while the bank is down, the clock waits for it.
    startToCloseTimeout: '10s',
    retry: { initialInterval: '500ms', maximumInterval: '5s' },
  });
  const triedAt = new Map<string, number>();
  for (let pause_ms = LOOK_AGAIN_MS.first; ; pause_ms = Math.min(2 * pause_ms, LOOK_AGAIN_MS.max)) {
    const bank = await advanceBankClock({ account_id, offset_ms, from_ms });
    const isRecent = ([, at]: [string, number]) => Date.now() < at + TRY_AGAIN_MS;
    const tried = [...triedAt].filter(isRecent).map(([id]) => id);
    const deliveries = await advanceDeliveries({ account_id, offset_ms, tried });
    for (const id of deliveries.waiting) if (!tried.includes(id)) triedAt.set(id, Date.now());
    // Last: earlier reports of the bank are applied when these answer.
    const resources = await advanceResources({ account_id, offset_ms });
    const stop = joinStops([bank, deliveries, resources]);
    if (stop.waiting.length === 0 || Date.now() >= until) return stop;
    await sleep(pause_ms);
  }
}
