import {
  ActivityCancellationType,
  ActivityFailure,
  CancellationScope,
  isCancellation,
  proxyActivities,
  sleep,
  workflowInfo,
} from '@temporalio/workflow';
import type { ConnectorActivities } from '../../connectors/contract/activities';
import { connectorQueue, readPrefix } from '../../src/domain/task-queues';
import type { Due } from './loop';

const SEND_MS_MAX = 30_000;

export interface BankAnswer {
  outcome: string;
  bank_reference?: string;
  transaction_id?: string;
}

export type NotFound = { outcome: 'not_found' };

export interface Instruction<Answer extends BankAnswer> {
  /** Noun for summaries, such as `refund`. */
  name: string;
  send: () => Promise<Answer>;
  lookUp: () => Promise<Answer | NotFound>;
  isOver: () => boolean;
  log: (line: string) => void;
}

export interface Earlier {
  /** Time until which the bank may still read it; ms since the epoch. */
  arrivesBy: number;
}

export interface InstructionState {
  /** Number of the newest instruction: only this one continues. */
  instruction: number;
  unanswered: { number: number; scope: CancellationScope } | undefined;
  /** Time until which an earlier run's instruction may arrive; ms since the epoch. */
  arrivesBy: number;
  /** Attempts without an answer; no run ends before them. */
  readonly pendingSends: Set<PendingSend>;
  bankReference: string | undefined;
}

interface PendingSend {
  /** Cancels it if no connector has started it. */
  cancel: () => void;
  cancelled: boolean;
  /** Resolves when its instruction is over. */
  over: () => Promise<BankAnswer | undefined>;
}

export function getEarlierInstruction(): Earlier {
  return { arrivesBy: Date.now() + SEND_MS_MAX };
}

/**
 * Adds the answer to the inbox. An earlier instruction of this run ends first, its look-up
 * cancelled, so that an operator does not wait for its next attempt. The `cancellationType` of
 * `send` must be WAIT_CANCELLATION_COMPLETED: only its end says whether the bank has the
 * instruction.
 * @param earlier is looked up before anything is sent
 */
export async function sendInstruction<Answer extends BankAnswer>(
  resource: InstructionState & {
    inbox: { push(item: { kind: 'answer'; answer: Answer }): unknown };
  },
  instruction: Instruction<Answer>,
  earlier?: Earlier,
): Promise<void> {
  resource.instruction += 1;
  const number = resource.instruction;
  const scope = new CancellationScope();
  const earlierScope = resource.unanswered?.scope;
  resource.unanswered = { number, scope };
  resource.arrivesBy = Math.max(resource.arrivesBy, earlier?.arrivesBy ?? 0);
  const pendingEnds = resource.pendingSends.size > 0 ? finishSends(resource) : undefined;
  earlierScope?.cancel();
  if (pendingEnds !== undefined) await pendingEnds;
  let pendingSend: PendingSend | undefined;
  let over: PendingSend['over'] = async () => undefined;
  const removeSend = () => {
    if (pendingSend !== undefined) resource.pendingSends.delete(pendingSend);
  };
  const send = async () => {
    const sendScope = new CancellationScope();
    pendingSend = { cancel: () => sendScope.cancel(), cancelled: false, over: () => over() };
    resource.pendingSends.add(pendingSend);
    try {
      return await sendScope.run(instruction.send);
    } catch (error) {
      removeSend();
      throw error;
    }
  };
  const addAnswer = (answer: Answer | undefined) => {
    if (answer !== undefined) {
      // At once, since a callback may overtake the answer.
      resource.bankReference =
        answer.bank_reference ?? answer.transaction_id ?? resource.bankReference;
      resource.inbox.push({ kind: 'answer', answer });
    }
    removeSend();
    if (resource.unanswered?.number === number) resource.unanswered = undefined;
    return answer;
  };
  const isOver = () => number !== resource.instruction || instruction.isOver();
  const answer = scope
    .run(() => sendOrLookUp<Answer>({ ...instruction, send, isOver }, earlier))
    .catch((error: unknown) => {
      if (isCancellation(error)) return undefined;
      throw error;
    });
  const end = answer.then(addAnswer);
  over = () => end;
  await end;
}

/** First wait; each further one doubles. */
const WAIT_MS_MIN = 1_000;
const LOOK_UP_WAIT_MS_MIN = 60_000;
const WAIT_MS_MAX = 3_600_000;

/**
 * An attempt without an answer may have arrived: it is sent again only when the bank does not know
 * it.
 * @returns undefined when no answer is needed
 * @throws CancelledFailure or ActivityFailure when its scope is cancelled
 */
async function sendOrLookUp<Answer extends BankAnswer>(
  instruction: Instruction<Answer>,
  earlier: Earlier | undefined,
): Promise<Answer | undefined> {
  const { name, isOver, log } = instruction;
  let mayHaveArrived = earlier !== undefined;
  let isFirstIteration = mayHaveArrived;
  let wait = WAIT_MS_MIN;
  while (!isOver()) {
    const answer = mayHaveArrived ? await lookUp(instruction) : await send(instruction);
    // Also when it is over: a late answer must not be lost.
    if (answer !== undefined && !isUnknown(answer)) return answer;
    if (isOver()) return undefined;
    if (answer === undefined) mayHaveArrived = true;
    else if (earlier !== undefined && Date.now() < earlier.arrivesBy) {
      // A connector may still execute it, so the answer is not final yet.
      await sleep(earlier.arrivesBy - Date.now(), { summary: `Ask about the ${name} again` });
      continue;
    } else if (isFirstIteration) {
      log('The bank does not know the instruction; it is sent.');
      mayHaveArrived = false;
    } else {
      log('The instruction never reached the bank; it is sent again.');
      await sleep(wait, { summary: `Send the ${name} again` });
      mayHaveArrived = false;
      wait = Math.min(wait * 2, WAIT_MS_MAX);
    }
    isFirstIteration = false;
  }
  return undefined;
}

function isUnknown<Answer extends BankAnswer>(answer: Answer | NotFound): answer is NotFound {
  return answer.outcome === 'not_found';
}

/** @returns undefined when it may have arrived */
async function send<Answer extends BankAnswer>({
  send,
  log,
}: Instruction<Answer>): Promise<Answer | undefined> {
  try {
    return await send();
  } catch (error) {
    if (!(error instanceof ActivityFailure)) throw error;
    log('The instruction ended without an answer; the bank is asked what it knows of it.');
    return undefined;
  }
}

async function lookUp<Answer extends BankAnswer>(
  instruction: Instruction<Answer>,
): Promise<Answer | NotFound | undefined> {
  const { name, isOver, log } = instruction;
  let wait = LOOK_UP_WAIT_MS_MIN;
  while (!isOver()) {
    try {
      return await instruction.lookUp();
    } catch (error) {
      if (!(error instanceof ActivityFailure) || isCancellation(error)) throw error;
      log(`The connector refused to look the ${name} up; it is looked up again later.`);
    }
    await sleep(wait, { summary: `Look the ${name} up again` });
    wait = Math.min(wait * 2, WAIT_MS_MAX);
  }
  return undefined;
}

const CANCEL_GRACE_MS = 5_000;

/** Cancels unstarted attempts when a started one has ended. */
export function cancelUnstartedSends(
  resource: InstructionState & { enteredAt: number },
): Due | undefined {
  const waiting = [...resource.pendingSends].filter(({ cancelled }) => !cancelled);
  if (waiting.length === 0) return undefined;
  const act = async () => {
    for (const pendingSend of waiting) cancelSend(pendingSend);
  };
  const at = resource.enteredAt + SEND_MS_MAX + CANCEL_GRACE_MS;
  return { at, summary: 'Cancel what no connector has started', act };
}

function cancelSend(pendingSend: PendingSend): void {
  pendingSend.cancelled = true;
  pendingSend.cancel();
}

/**
 * Cancels unstarted attempts, and waits 30 seconds at most.
 * @returns the bank's answers, which are in the inbox
 */
async function finishSends(resource: InstructionState): Promise<unknown[]> {
  const earlier = [...resource.pendingSends];
  for (const pendingSend of earlier) cancelSend(pendingSend);
  const answers = await Promise.all(earlier.map(({ over }) => over()));
  return answers.filter((answer) => answer !== undefined);
}

/** Answers after which the bank moves no money. */
const NOT_TAKEN = ['refused', 'outdated'];

/** @returns whether the bank has accepted an attempt: its answer is in the inbox, or applied */
export async function stopInstructing(
  resource: InstructionState & { inbox: readonly { kind: string; answer?: unknown }[] },
): Promise<boolean> {
  resource.instruction += 1;
  const answers = await finishSends(resource);
  const inbox = resource.inbox.filter(({ kind }) => kind === 'answer');
  return [...answers, ...inbox.map(({ answer }) => answer)].some(
    (answer) => !NOT_TAKEN.includes(Object(answer).outcome),
  );
}

/** `once` sends, `patient` looks up. */
export function moneyActivities<Activities extends object = ConnectorActivities>(
  connector: string,
  name: string,
) {
  const taskQueue = bankQueue(connector);
  return {
    // A single attempt, since a second could overtake the first. It may wait for a connector
    // without limit: a waiting attempt was not sent.
    once: proxyActivities<Activities>({
      taskQueue,
      startToCloseTimeout: SEND_MS_MAX,
      retry: { maximumAttempts: 1 },
      // Only the end of a started attempt has the outcome.
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

/** Short, since an operator waits. @see askBank */
const CANCEL_MS_MAX = 4_000;
const QUESTION_MS_MAX = 8_000;

export function questionActivities<Activities extends object = ConnectorActivities>(
  connector: string,
  name: string,
) {
  const taskQueue = bankQueue(connector);
  return {
    // A single attempt: a connector that cannot cancel has not registered it.
    canceller: proxyActivities<Required<Activities>>({
      taskQueue,
      scheduleToCloseTimeout: CANCEL_MS_MAX,
      retry: { maximumAttempts: 1 },
      summary: `Cancel the ${name} at the bank`,
    }),
    asker: proxyActivities<Required<Activities>>({
      taskQueue,
      scheduleToCloseTimeout: QUESTION_MS_MAX,
      retry: { initialInterval: '500ms', backoffCoefficient: 2 },
      summary: `Ask the bank whether it holds the ${name}`,
    }),
  };
}

export function bankQueue(connector: string): string {
  return connectorQueue(connector, readPrefix(workflowInfo().taskQueue));
}
