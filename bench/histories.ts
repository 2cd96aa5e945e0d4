import type { Client, WorkflowHandle } from '@temporalio/client';
import { mean } from './statistics';

type History = Awaited<ReturnType<WorkflowHandle['fetchHistory']>>;
type HistoryEvent = NonNullable<History['events']>[number];

/** Kinds of Temporal actions, as this benchmark counts them; see `docs/benchmark.md`. */
const ACTIONS = {
  starts: (event) => (event.workflowExecutionStartedEventAttributes ? 1 : 0),
  signals: (event) => (event.workflowExecutionSignaledEventAttributes ? 1 : 0),
  updates: (event) => (event.workflowExecutionUpdateAcceptedEventAttributes ? 1 : 0),
  /** Counts every attempt; the started event tells how many there were. */
  activities: (event) => event.activityTaskStartedEventAttributes?.attempt ?? 0,
  local_activities: (event) => (event.markerRecordedEventAttributes ? 1 : 0),
  timers: (event) => (event.timerStartedEventAttributes ? 1 : 0),
  search_attribute_upserts: (event) =>
    event.upsertWorkflowSearchAttributesEventAttributes ? 1 : 0,
} satisfies Record<string, (event: HistoryEvent) => number>;

type ActionKind = keyof typeof ACTIONS;
const KINDS = Object.keys(ACTIONS) as ActionKind[];

/** Means per payment, over all of a payment's workflows. */
export interface HistoryFigures {
  history_events: number;
  workflow_tasks: number;
  actions: number;
  actions_by_kind: Record<ActionKind, number>;
}

/**
 * Reads the whole histories of a few payments.
 * @param payments the workflow ids of each
 */
export async function countHistories(
  temporal: Client,
  payments: readonly (readonly string[])[],
): Promise<HistoryFigures> {
  const perPayment: HistoryEvent[][] = [];
  for (const workflowIds of payments) {
    const histories = await Promise.all(
      workflowIds.map((id) => temporal.workflow.getHandle(id).fetchHistory()),
    );
    perPayment.push(histories.flatMap(({ events }) => events ?? []));
  }
  const meanOf = (count: (event: HistoryEvent) => number): number =>
    mean(perPayment.map((events) => events.reduce((sum, event) => sum + count(event), 0)));
  const byKind = Object.fromEntries(KINDS.map((kind) => [kind, meanOf(ACTIONS[kind])])) as Record<
    ActionKind,
    number
  >;
  return {
    history_events: meanOf(() => 1),
    workflow_tasks: meanOf((event) => (event.workflowTaskCompletedEventAttributes ? 1 : 0)),
    actions: Object.values(byKind).reduce((sum, count) => sum + count, 0),
    actions_by_kind: byKind,
  };
}
