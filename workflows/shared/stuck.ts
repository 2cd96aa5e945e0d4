import {
  defineSignal,
  getCurrentDetails,
  setCurrentDetails,
  setHandler,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import { SEARCH_KEYS } from '../../src/domain/search-attributes';
import { STEP_STUCK_REASON, STEP_STUCK_SIGNAL } from '../../src/domain/stuck';

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
  setHandler(stepStuck, (step) => showStuck(String(step)), { description });
}

function showStuck(step: string): void {
  if (writes.pending === 0 || writes.covered !== undefined) return;
  writes.covered = { attention: readAttention(), details: getCurrentDetails() };
  setAttention(STEP_STUCK_REASON);
  setCurrentDetails(
    `⚠ **${STEP_STUCK_REASON}**: \`${step}\` fails again and again, and nothing else happens until it ` +
      'succeeds. **Pending Activities** has its last failure. It goes on by itself once the cause ' +
      'is gone.',
  );
}

/** Repeats a write until it succeeds, then ends the stuck reason. */
export async function untilWritten<T>(write: () => Promise<T>): Promise<T> {
  writes.pending += 1;
  try {
    return await write();
  } finally {
    writes.pending -= 1;
    uncover();
  }
}

function uncover(): void {
  const { covered } = writes;
  writes.covered = undefined;
  // A reason that came meanwhile says more.
  if (covered === undefined || readAttention() !== STEP_STUCK_REASON) return;
  setAttention(covered.attention);
  setCurrentDetails(covered.details);
}

function readAttention(): string | null {
  return workflowInfo().typedSearchAttributes.get(SEARCH_KEYS.attention) ?? null;
}

function setAttention(value: string | null): void {
  upsertSearchAttributes([{ key: SEARCH_KEYS.attention, value }]);
}
