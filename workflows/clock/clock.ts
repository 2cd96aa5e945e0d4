import {
  ActivityCancellationType,
  allHandlersFinished,
  CancellationScope,
  condition,
  continueAsNew,
  defineUpdate,
  isCancellation,
  proxyActivities,
  setCurrentDetails,
  setHandler,
  sleep,
  workflowInfo,
} from '@temporalio/workflow';
import type { ClockActivities, InFlightWalk } from '../../activities/clock';
import type { ClockConnectorActivities } from '../../connectors/contract/clock';
import {
  type ClockAsk,
  type ClockStart,
  type ClockTarget,
  findStop,
  type ResourceDue,
} from '../../src/domain/merchants/clock';
import { uncancelled } from '../shared/inbox';
import { bankQueue } from '../shared/instruction';
import { refuse } from '../shared/refusal';

const advance = defineUpdate<void, [ClockTarget]>('advance');
const stop = defineUpdate<void, [object]>('stop');

const { beginAdvance, storeOffset, endAdvance, advanceResources, advanceDeliveries } =
  proxyActivities<ClockActivities>({
    startToCloseTimeout: '1 minute',
    // Well below the wait at a stop, so that a lost worker leaves some of it.
    heartbeatTimeout: '10s',
    retry: { initialInterval: '500ms', maximumInterval: '10s' },
    // What they do is right also after a stop.
    cancellationType: ActivityCancellationType.TRY_CANCEL,
  });

/** Longest wait at one stop; then the clock goes on, and names what is behind. */
const STOP_MS_MAX = 20_000;
const LOOK_AGAIN_MS = { first: 100, max: 400 };
/** Each reset of an attempt voids the timer of the one before, which the server fires up to 1 s late. */
const TRY_AGAIN_MS = 5_000;
/** Time to store a create that began before the clock advanced. */
const LINGER_MS = 15_000;
const BEHIND_MAX = 100;
/** Workflows that one activity asks. */
const ASKS_MAX = 100;

interface AdvanceState {
  target: ClockTarget;
  offset_ms: number;
  /** Account time of its start, ISO 8601. */
  began_at: string;
}

interface Advance extends AdvanceState {
  behind: Set<string>;
  /** Next due time of each resource that has one before the target. */
  dues: Map<string, number>;
  /** Reports of the bank that may not have arrived, with their workflows. */
  reporting: Map<string, string>;
  /** Workflows about which the bank reports at the next stop. */
  awaited: string[];
  /** Cancelled to stop it. */
  scope: CancellationScope;
}

interface ClockResume extends ClockStart {
  advance?: AdvanceState & {
    behind: string[];
    dues: ResourceDue[];
    reporting: [string, string][];
    awaited: string[];
  };
}

/**
 * Stops at each moment at which something is due, in order, and waits until that is done. Each
 * resource is asked at the start when it is due next, then only where it is due or gets something
 * new, and at the end once more.
 * @see docs/api.md#sandbox-clock
 */
export function accountClock(start: ClockResume): Promise<void> {
  return CancellationScope.nonCancellable(() => run(start));
}

async function run({ advance: resumed, ...start }: ClockResume): Promise<void> {
  const { account_id } = start;
  const parent = CancellationScope.current();
  const openScope = () => new CancellationScope({ cancellable: true, parent });
  let isTaken = resumed !== undefined;
  let current: Advance | undefined = resumed && {
    ...resumed,
    behind: new Set(resumed.behind),
    dues: new Map(resumed.dues),
    reporting: new Map(resumed.reporting),
    scope: openScope(),
  };
  const begin = async (target: ClockTarget) => {
    isTaken = true;
    if (current !== undefined) await condition(() => current === undefined);
    const { offset_ms } = await beginAdvance({ account_id, target });
    current = {
      ...{ target, offset_ms, began_at: toIso(offset_ms - LINGER_MS), awaited: [] },
      behind: new Set(),
      dues: new Map(),
      reporting: new Map(),
      scope: openScope(),
    };
  };
  setHandler<void, [ClockTarget], typeof advance>(advance, uncancelled(begin), {
    description: 'Moves the clock forward to {"offset_ms": …, "at": …}. Sent by the API.',
    validator: () => {
      if (isTaken) refuse('clock_advancing', 'The clock is still advancing.');
    },
  });
  const end = async () => {
    await condition(() => current !== undefined || !isTaken);
    // Another run of this workflow was ended from outside.
    if (current === undefined) return await endAdvance({ account_id, behind: [] });
    current.scope.cancel();
    await condition(() => current === undefined);
  };
  setHandler<void, [object], typeof stop>(stop, uncancelled(end), {
    description: 'Lets the clock stand where it is: {}. Sent by the API.',
  });
  let rest: (InFlightWalk & Offsets) | undefined;
  while (true) {
    if (await condition(() => current !== undefined, LINGER_MS)) {
      if (current === undefined) continue;
      const { target, behind, scope, began_at } = current;
      const advancing = current;
      await scope
        .run(() => reach(start, advancing))
        .catch((error: unknown) => {
          if (!isCancellation(error)) throw error;
        });
      // Readers see it stand before the workflow learns that this is stored.
      isTaken = false;
      await endAdvance({ account_id, behind: [...behind].slice(0, BEHIND_MAX) });
      const { offset_ms } = advancing;
      setCurrentDetails(`**Stands** since ${toIso(offset_ms)}.`);
      current = undefined;
      const offsets = { account_id, offset_ms, until_ms: target.offset_ms };
      if (scope.consideredCancelled) await askAll(offsets, {});
      rest = { ...offsets, since: began_at };
    } else if (rest !== undefined) {
      // What was created with an earlier time meanwhile follows.
      const { since, ...offsets } = rest;
      await askAll(offsets, { since });
      rest = undefined;
    } else if (allHandlersFinished()) return;
  }
}

async function reach(start: ClockStart, advancing: Advance): Promise<void> {
  const { target, behind, dues, began_at } = advancing;
  const { account_id } = start;
  // A continued run knows them.
  const first = dues.size === 0 ? {} : { since: began_at };
  let due_at_ms = await settle(start, advancing, advancing.offset_ms, first);
  while (advancing.offset_ms < target.offset_ms) {
    const { offset_ms: from_ms } = advancing;
    const next = due_at_ms === null ? target.offset_ms : due_at_ms - Date.now();
    const offset_ms = Math.min(Math.max(next, from_ms), target.offset_ms);
    setCurrentDetails(
      `**Advancing** to ${target.at}: now at ${toIso(offset_ms)}. At each stop it waits for the ` +
        `connector \`${start.connector}\`, also while that is down.`,
    );
    const since = toIso(from_ms - LINGER_MS);
    // A late write would move a clock that stands.
    await CancellationScope.nonCancellable(() => storeOffset({ account_id, offset_ms }));
    advancing.offset_ms = offset_ms;
    const isLast = offset_ms === target.offset_ms;
    due_at_ms = await settle(start, advancing, from_ms, isLast ? {} : { since });
    if (!isLast && workflowInfo().continueAsNewSuggested && allHandlersFinished()) {
      const { awaited, reporting } = advancing;
      const named = { behind: [...behind].slice(0, BEHIND_MAX) };
      const bank = { awaited, reporting: [...reporting] };
      const state = { target, offset_ms, began_at, ...named, ...bank, dues: [...dues] };
      await continueAsNew<typeof accountClock>({ ...start, advance: state });
    }
  }
}

/**
 * Lets happen what is due at a stop.
 * @param walk what is asked besides what is due
 * @returns the next time at which something is due
 */
async function settle(
  { account_id, connector }: ClockStart,
  advancing: Advance,
  from_ms: number,
  walk: InFlightWalk,
): Promise<number | null> {
  const { target, offset_ms, behind, dues } = advancing;
  const { advanceBankClock } = proxyActivities<ClockConnectorActivities>({
    taskQueue: bankQueue(connector),
    // Without a limit: while the bank is down, the clock waits for it.
    startToCloseTimeout: '10s',
    retry: { initialInterval: '500ms', maximumInterval: '5s' },
    cancellationType: ActivityCancellationType.TRY_CANCEL,
  });
  const answers = new Map<string, number>();
  const listDue = () =>
    [...dues].filter(([, at]) => at <= Date.now() + offset_ms).map(([id]) => id);
  const ask = async (ids: readonly string[], more?: InFlightWalk) => {
    const asks = [...new Set(ids)].map((id): ClockAsk => [id, answers.get(id) ?? 0]);
    const offsets = { account_id, offset_ms, until_ms: target.offset_ms };
    const { silent, dues: found } = await askAll(offsets, more, asks);
    for (const [id, count] of asks.filter(([id]) => !silent.includes(id))) {
      dues.delete(id);
      answers.set(id, count + 1);
    }
    for (const [id, at] of found) dues.set(id, at);
    return silent;
  };
  // Before the bank reports about them, so that they apply it at the time of this stop.
  let silent = await ask([...listDue(), ...advancing.awaited], walk);
  const until = Date.now() + STOP_MS_MAX;
  const triedAt = new Map<string, number>();
  for (let pause_ms = LOOK_AGAIN_MS.first; ; pause_ms = Math.min(2 * pause_ms, LOOK_AGAIN_MS.max)) {
    const bank = await advanceBankClock({ account_id, offset_ms, from_ms });
    const isRecent = ([, at]: [string, number]) => Date.now() < at + TRY_AGAIN_MS;
    const tried = [...triedAt].filter(isRecent).map(([id]) => id);
    const deliveries = await advanceDeliveries({ account_id, offset_ms, tried });
    for (const id of deliveries.waiting) if (!tried.includes(id)) triedAt.set(id, Date.now());
    const reporting = new Map(bank.reporting);
    const arrived = [...advancing.reporting].filter(([report]) => !reporting.has(report));
    advancing.reporting = reporting;
    // Last: what has arrived is applied when these answer.
    const asks = [...silent, ...listDue(), ...arrived.map(([, id]) => id)];
    silent = asks.length === 0 ? [] : await ask(asks);
    advancing.awaited = bank.awaited;
    const late = [...silent, ...listDue()];
    const waiting = [
      ...bank.waiting,
      ...deliveries.waiting,
      ...late.map((id) => id.slice(id.indexOf(':') + 1)),
    ];
    if (waiting.length === 0 || Date.now() >= until) {
      for (const id of waiting) behind.add(id);
      for (const id of late) dues.delete(id);
      return findStop([...dues.values()], [bank.due_at_ms, deliveries.due_at_ms]);
    }
    await sleep(pause_ms);
  }
}

interface Offsets {
  account_id: string;
  offset_ms: number;
  until_ms: number;
}

/** Asks some, and page by page those of a walk. */
async function askAll(offsets: Offsets, walk?: InFlightWalk, asks: readonly ClockAsk[] = []) {
  const dues: ResourceDue[] = [];
  const silent: string[] = [];
  let next = walk;
  for (let from = 0; from < asks.length || next !== undefined; from += ASKS_MAX) {
    const some = asks.slice(from, from + ASKS_MAX);
    const stop = await advanceResources({ ...offsets, asks: some, walk: next });
    dues.push(...stop.dues);
    silent.push(...stop.silent);
    next = stop.place === null ? undefined : { ...next, place: stop.place };
  }
  return { dues, silent };
}

function toIso(offset_ms: number): string {
  return new Date(Date.now() + offset_ms).toISOString();
}
