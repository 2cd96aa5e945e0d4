import type { Client, WorkflowHandle } from '@temporalio/client';
import { type Counts, mean, total } from './statistics';

type History = Awaited<ReturnType<WorkflowHandle['fetchHistory']>>;
type HistoryEvent = NonNullable<History['events']>[number];

/** Kinds of Temporal actions. @see docs/benchmark.md#how-to-read-it */
const ACTIONS = {
  starts: (event) => (event.workflowExecutionStartedEventAttributes ? 1 : 0),
  signals: (event) => (event.workflowExecutionSignaledEventAttributes ? 1 : 0),
  updates: (event) => (event.workflowExecutionUpdateAcceptedEventAttributes ? 1 : 0),
  // Every attempt counts; the history has only the last one's start.
  activities: (event) => event.activityTaskStartedEventAttributes?.attempt ?? 0,
  'local activities': (event) => (event.markerRecordedEventAttributes ? 1 : 0),
  timers: (event) => (event.timerStartedEventAttributes ? 1 : 0),
  'search attribute upserts': (event) =>
    event.upsertWorkflowSearchAttributesEventAttributes ? 1 : 0,
} satisfies Record<string, (event: HistoryEvent) => number>;

/** Means per payment, over all of a payment's workflows. */
export interface HistoryCounts {
  history_events: number;
  workflow_tasks: number;
  actions: number;
  actions_by_kind: Counts;
}

/**
 * Reads the whole histories of a few payments.
 * @param payments the workflow IDs of each
 */
export async function countHistories(
  temporal: Client,
  payments: readonly (readonly string[])[],
): Promise<HistoryCounts> {
  const perPayment: HistoryEvent[][] = [];
  for (const workflowIds of payments) {
    const histories = await Promise.all(
      workflowIds.map((id) => temporal.workflow.getHandle(id).fetchHistory()),
    );
    perPayment.push(histories.flatMap(({ events }) => events ?? []));
  }
  const countMean = (count: (event: HistoryEvent) => number): number =>
    mean(perPayment.map((events) => events.reduce((sum, event) => sum + count(event), 0)));
  const actions_by_kind = Object.fromEntries(
    Object.entries(ACTIONS).map(([kind, count]) => [kind, countMean(count)]),
  );
  return {
    history_events: countMean(() => 1),
    workflow_tasks: countMean((event) => (event.workflowTaskCompletedEventAttributes ? 1 : 0)),
    actions: total(actions_by_kind),
    actions_by_kind,
  };
}
