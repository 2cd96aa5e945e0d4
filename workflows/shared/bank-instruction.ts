import {
  ActivityCancellationType,
  ActivityFailure,
  CancellationScope,
  proxyActivities,
  sleep,
} from '@temporalio/workflow';
import type { ConnectorActivities } from '../../connectors/contract/activities';
import type { Due } from './alarm';
import { bankQueue } from './bank-queue';

/** The longest that a connector may be at one attempt. */
const SEND_MS_MAX = 30_000;
const TAKE_BACK_GRACE_MS = 5_000;

/** An instruction to a bank that moves money, under one id. */
export interface Instruction<Answer> {
  /** In summaries and the journal: `refund`. */
  name: string;
  /** Whether the record stands as this run believes: read before each attempt. */
  isCurrent: () => Promise<boolean>;
  /** Lets the loop see where the record stands. */
  outdated: () => void;
  /** Makes one attempt. */
  send: () => Promise<Answer>;
  /** Asks the bank what it knows, patiently. */
  lookUp: () => Promise<Answer | { outcome: 'not_found' }>;
  /** Whether an answer is no longer needed. */
  isOver: () => boolean;
  tell: (line: string) => void;
  answered: (answer: Answer) => void;
}

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

/** The bank's activities for an instruction that moves money: `once` to send, `patient` to look up. */
export function moneyActivities<Activities extends object = ConnectorActivities>(
  connector: string,
  name: string,
) {
  const taskQueue = bankQueue(connector);
  return {
    // A single attempt, since a second could pass the first; and no limit to how long it may wait
    // for a connector, since an attempt that waits there was not sent.
    once: proxyActivities<Activities>({
      taskQueue,
      startToCloseTimeout: SEND_MS_MAX,
      retry: { maximumAttempts: 1 },
      // An attempt that a connector has begun is waited for: only its end tells what became of it.
      cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
      summary: `Send the ${name} to the bank`,
    }),
    patient: proxyActivities<Activities>({
      taskQueue,
      startToCloseTimeout: '30s',
      retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '2 minutes' },
      summary: `Ask the bank what it knows of the ${name}`,
    }),
  };
}

/** An earlier instruction that may have arrived. */
export interface Earlier {
  /** In ms since the epoch: until then a bank that does not know it may still be reading it. */
  arrivesBy: number;
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

/** The first wait; each further one doubles, so that months of trying fit into a history. */
const WAIT_MS_MIN = 1_000;
const LOOK_UP_WAIT_MS_MIN = 60_000;
const WAIT_MS_MAX = 3_600_000;

/**
 * Instructs until the bank has answered or no answer is needed. An attempt that ends without an
 * answer may have arrived: the bank is asked what it knows, and the instruction is sent again, under
 * the same id, only when the bank does not know it.
 */
async function instruct<Answer extends { outcome: string }>(
  instruction: Instruction<Answer>,
  earlier: Earlier | undefined,
): Promise<void> {
  const { name, isOver, tell, answered } = instruction;
  let mayHaveArrived = earlier !== undefined;
  let isFirstTurn = mayHaveArrived;
  let wait = WAIT_MS_MIN;
  while (!isOver()) {
    if (!mayHaveArrived && !(await instruction.isCurrent())) {
      if (isOver()) return;
      tell('The record has moved on without this run: nothing is sent.');
      return instruction.outdated();
    }
    if (isOver()) return;
    const answer = mayHaveArrived ? await lookUp(instruction) : await send(instruction);
    // Also when it is over: an answer that comes too late must not be lost.
    if (answer !== undefined && !isUnknown(answer)) return answered(answer);
    if (isOver()) return;
    if (answer === undefined) mayHaveArrived = true;
    else if (earlier !== undefined && Date.now() < earlier.arrivesBy) {
      // A connector may still be at it: the same answer counts once nothing can arrive any more.
      await sleep(earlier.arrivesBy - Date.now(), { summary: `Ask about the ${name} again` });
      continue;
    } else if (isFirstTurn) {
      tell('The bank does not know the instruction; it is sent.');
      mayHaveArrived = false;
    } else {
      tell('The instruction never reached the bank; it is sent again.');
      await sleep(wait, { summary: `Send the ${name} again` });
      mayHaveArrived = false;
      wait = Math.min(wait * 2, WAIT_MS_MAX);
    }
    isFirstTurn = false;
  }
}

function isUnknown<Answer extends { outcome: string }>(
  answer: Answer | { outcome: 'not_found' },
): answer is { outcome: 'not_found' } {
  return answer.outcome === 'not_found';
}

/** Undefined: whether it arrived is unknown. */
async function send<Answer>({ send, tell }: Instruction<Answer>): Promise<Answer | undefined> {
  try {
    return await send();
  } catch (error) {
    if (!(error instanceof ActivityFailure)) throw error;
    tell('The instruction ended without an answer; the bank is asked what it knows of it.');
    return undefined;
  }
}

/** Undefined when an answer is no longer needed. */
async function lookUp<Answer>(
  instruction: Instruction<Answer>,
): Promise<Answer | { outcome: 'not_found' } | undefined> {
  const { name, isOver, tell } = instruction;
  let wait = LOOK_UP_WAIT_MS_MIN;
  while (!isOver()) {
    try {
      return await instruction.lookUp();
    } catch (error) {
      if (!(error instanceof ActivityFailure)) throw error;
      tell(`The connector refused to look the ${name} up; it is asked again later.`);
    }
    await sleep(wait, { summary: `Look the ${name} up again` });
    wait = Math.min(wait * 2, WAIT_MS_MAX);
  }
  return undefined;
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
