import { CancellationScope } from '@temporalio/workflow';
import type { Due } from './alarm';
import { SEND_MS_MAX } from './bank-activities';
import { type Earlier, type Instruction, instruct } from './bank-attempts';

const TAKE_BACK_GRACE_MS = 5_000;

/** The part of a resource that remembers the instruction it gives. */
export interface Instructing {
  /** Counts the instructions given: only the newest one goes on. */
  instruction: number;
  /** Attempts on their way to the bank; no run ends while there is one. */
  readonly sendings: Set<Sending>;
}

/** An attempt that is on its way to the bank. */
interface Sending {
  /** Takes it back if no connector has begun with it. */
  cancel: () => void;
  cancelled: boolean;
  /** Resolves when the instruction that it belongs to is over. */
  over: () => Promise<void>;
}

/** Given by an earlier run, which may have been ended while a connector was at it. */
export function givenBefore(): Earlier {
  return { arrivesBy: Date.now() + SEND_MS_MAX };
}

/** Age at which a write of this run may have been overtaken, as in a workflow that was restored. */
const FRESH_MS_MAX = 10_000;

/**
 * Believes once that the record stands as this run does, where the run has just written it.
 * @param writtenAt in ms since the epoch; undefined where another run or attempt has written it
 */
export function currentOnce(writtenAt: number | undefined, isCurrent: () => Promise<boolean>) {
  let isBelieved = writtenAt !== undefined && Date.now() - writtenAt < FRESH_MS_MAX;
  return async (): Promise<boolean> => {
    if (!isBelieved) return await isCurrent();
    isBelieved = false;
    return true;
  };
}

/**
 * Gives the bank its instruction. An instruction given earlier in this run no longer counts, so that
 * an operator need not wait for its next turn; an attempt of it that is on its way is ended first.
 * The `cancellationType` of `send` must be WAIT_CANCELLATION_COMPLETED: only its end tells what
 * became of it.
 * @param earlier where an earlier instruction may have arrived: the bank is asked before it is told
 */
export async function giveInstruction<Answer extends { outcome: string }>(
  resource: Instructing,
  instruction: Instruction<Answer>,
  earlier?: Earlier,
): Promise<void> {
  resource.instruction += 1;
  const number = resource.instruction;
  if (resource.sendings.size > 0) await endSendings(resource);
  let sending: Sending | undefined;
  let over = Promise.resolve();
  const ended = () => {
    if (sending !== undefined) resource.sendings.delete(sending);
  };
  const send = async () => {
    const scope = new CancellationScope();
    sending = { cancel: () => scope.cancel(), cancelled: false, over: () => over };
    resource.sendings.add(sending);
    try {
      return await scope.run(instruction.send);
    } catch (error) {
      ended();
      throw error;
    }
  };
  const answered = (answer: Answer) => {
    instruction.answered(answer);
    ended();
  };
  const isOver = () => number !== resource.instruction || instruction.isOver();
  over = instruct<Answer>({ ...instruction, send, answered, isOver }, earlier);
  await over;
}

/**
 * Takes back the attempts that no connector has begun by the time in which any begun one has ended:
 * a run whose resource is final would wait for a connector that is away.
 */
export function takingBack(resource: Instructing & { since: number }): Due | undefined {
  const waiting = [...resource.sendings].filter(({ cancelled }) => !cancelled);
  if (waiting.length === 0) return undefined;
  const act = async () => {
    for (const sending of waiting) takeBack(sending);
  };
  const at = resource.since + SEND_MS_MAX + TAKE_BACK_GRACE_MS;
  return { at, summary: 'Take back what no connector has begun', act };
}

function takeBack(sending: Sending): void {
  sending.cancelled = true;
  sending.cancel();
}

/** Takes back the attempts that no connector has begun, and waits for the rest: 30 seconds at most. */
async function endSendings(resource: Instructing): Promise<void> {
  const earlier = [...resource.sendings];
  for (const sending of earlier) takeBack(sending);
  await Promise.all(earlier.map(({ over }) => over()));
}

/**
 * Stops instructing; an attempt that is on its way is waited for, 30 seconds at most.
 * @returns whether the bank has taken it meanwhile: its answer is in the inbox
 */
export async function stopInstructing(
  resource: Instructing & { inbox: readonly { kind: string; answer?: unknown }[] },
): Promise<boolean> {
  resource.instruction += 1;
  await endSendings(resource);
  return resource.inbox.some(
    ({ kind, answer }) => kind === 'answer' && Object(answer).outcome !== 'refused',
  );
}
