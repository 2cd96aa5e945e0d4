import {
  ActivityFailure,
  ApplicationFailure,
  defineSignal,
  getCurrentDetails,
  log,
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  setHandler,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import type { LifecycleActivities } from '../../activities';
import type { Known, StaleResult } from '../../activities/shared/record-table';
import type { SenderActivities } from '../../activities/shared/verification';
import { NO_LOCK } from '../../src/domain/no-lock';
import { STEP_STUCK_REASON, STEP_STUCK_SIGNAL } from '../../src/domain/operators/operator-act';
import { quoteMarkdown } from '../../src/domain/printable';
import { SEARCH_KEYS } from '../../src/domain/search-attributes';

type Activities = LifecycleActivities & SenderActivities;

export type Write<T> = (activities: Pick<Activities, keyof Activities>) => Promise<T>;

/** Writes that count in the version, and are no transitions. */
export type Booking =
  | 'clawBack'
  | 'liftDispute'
  | 'recordDispute'
  | 'recordDisputeReport'
  | 'recordDisputeStep'
  | 'recordMovement'
  | 'recordNetworkFee'
  | 'recordReturn'
  | 'resolveMovement';
export type BookingInput<Name extends Booking> = Omit<
  Parameters<LifecycleActivities[Name]>[0],
  keyof Known
>;
export type Booked<Name extends Booking> = Extract<
  Awaited<ReturnType<LifecycleActivities[Name]>>,
  { stale?: never }
>;
export type Bookings = {
  [Name in Booking]: (
    input: BookingInput<Name> & Known,
  ) => Promise<Booked<Name> | StaleResult<string, string>>;
};

/**
 * Cheap in history. Given up far within the time of a task: where a task times out while a local
 * activity runs in it, the SDK may report it without the signals that came meanwhile, and no worker
 * can replay that history.
 */
const quick = proxyLocalActivities<Activities>({
  scheduleToCloseTimeout: '1500ms',
  // A debit without the lock waits outside the slots of a workflow task.
  retry: { maximumAttempts: 2, initialInterval: '200ms', nonRetryableErrorTypes: [NO_LOCK] },
});

/** The pending activity shows an outage in the UI. */
const patient = proxyActivities<Activities>({
  startToCloseTimeout: '15s',
  retry: { initialInterval: '500ms', backoffCoefficient: 2, maximumInterval: '30s' },
  summary: 'Write to the database',
});

/**
 * Use it where a lost workflow task loses an accepted update, and its signals come again before a
 * bank's answer; a local activity might have run already.
 */
export async function writeScheduled<T>(write: Write<T>): Promise<T> {
  writes.pending += 1;
  try {
    return await write(patient);
  } finally {
    writes.pending -= 1;
    const { covered } = writes;
    writes.covered = undefined;
    // A reason that came meanwhile says more.
    if (covered !== undefined && readAttention() === STEP_STUCK_REASON) {
      setAttention(covered.attention);
      setCurrentDetails(covered.details);
    }
  }
}

/**
 * Repeats until it succeeds.
 * @throws ActivityFailure that is not retryable: our fault, never an outage
 */
export async function writeLocally<T>(write: Write<T>): Promise<T> {
  try {
    return await write(quick);
  } catch (error) {
    const cause = error instanceof ActivityFailure ? error.cause : undefined;
    if (cause instanceof ApplicationFailure && cause.nonRetryable) throw error;
    log.warn('A write is slow; it goes on as an ordinary activity.');
    return await writeScheduled(write);
  }
}

const stepStuck = defineSignal<[unknown]>(STEP_STUCK_SIGNAL);

/** Writes that are repeated until they succeed. Each workflow has its own module. */
const writes: { pending: number; covered: Shown | undefined } = { pending: 0, covered: undefined };

/** Texts to restore after the reason. */
interface Shown {
  attention: string | null;
  details: string;
}

/** Shows a stuck step by search attribute and text: MongoDB may be away. */
export function listenForStuckSteps(): void {
  const description = 'Sent by an activity that fails again and again: shows `record_stuck`.';
  const show = (step: unknown): void => {
    if (writes.pending === 0 || writes.covered !== undefined) return;
    writes.covered = { attention: readAttention(), details: getCurrentDetails() };
    setAttention(STEP_STUCK_REASON);
    setCurrentDetails(
      `⚠ **${STEP_STUCK_REASON}**: ${quoteMarkdown(String(step))} fails again and again, and nothing ` +
        'else happens until it succeeds. **Pending Activities** has its last failure. It goes on ' +
        'by itself once the cause is gone.',
    );
  };
  setHandler(stepStuck, show, { description });
}

function readAttention(): string | null {
  return workflowInfo().typedSearchAttributes.get(SEARCH_KEYS.attention) ?? null;
}

function setAttention(value: string | null): void {
  upsertSearchAttributes([{ key: SEARCH_KEYS.attention, value }]);
}
