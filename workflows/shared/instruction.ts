import {
  ActivityCancellationType,
  ActivityFailure,
  CancellationScope,
  isCancellation,
  proxyActivities,
  sleep,
  TimeoutFailure,
  workflowInfo,
} from '@temporalio/workflow';
import type { ConnectorActivities, Outdated } from '../../connectors/contract/activities';
import { readBankReference } from '../../src/domain/shape';
import {
  connectorQueue,
  QUESTION_PRIORITY,
  questionQueue,
  readPrefix,
} from '../../src/domain/task-queues';
import type { BankAnswer, InstructionState, NotFound, PendingSend } from './instructed-rules';
import type { Due } from './loop';

const SEND_MS_MAX = 30_000;

/** Time until which the bank may still read what an earlier run has sent; ms since the epoch. */
export function getEarlierArrival(): number {
  return Date.now() + SEND_MS_MAX;
}

/** First wait; each further one doubles. */
const WAIT_MS_MIN = 1_000;
const LOOK_UP_WAIT_MS_MIN = 60_000;
const WAIT_MS_MAX = 3_600_000;
/** Ends the waits of a payout that its recipient waits for. */
const INSTANT_WAIT_MS_MAX = 60_000;

interface Instructing<Answer> extends InstructionState {
  status: string;
  inbox: { push(item: { kind: 'answer'; answer: Answer | Outdated }): unknown };
}

interface InstructRules<Answer extends BankAnswer, R extends Instructing<Answer>> {
  noun: string;
  record: { logActivity(resource: R, line: string): void };
  isUnsent: (status: R['status']) => boolean;
  buildInstruction: (resource: R) => {
    send: () => Promise<Answer | Outdated>;
    lookUp: () => Promise<Answer | NotFound>;
    isInstant?: boolean;
  };
}

/**
 * Sends an instruction, and adds the bank's answer to the inbox. An attempt without an answer may
 * have arrived: the bank is asked, and it is sent again only if the bank does not know it. An
 * earlier instruction of this run ends first, its look-up cancelled, so that an operator does not
 * wait for its next attempt.
 * @param arrivesBy time until which an earlier instruction may arrive, ms since the epoch: it is
 *   looked up before anything is sent
 */
export async function instruct<Answer extends BankAnswer, R extends Instructing<Answer>>(
  { noun, record, isUnsent, buildInstruction }: InstructRules<Answer, R>,
  resource: R,
  arrivesBy?: number,
): Promise<void> {
  const { send, lookUp, isInstant = false } = buildInstruction(resource);
  const waitMax = isInstant ? INSTANT_WAIT_MS_MAX : WAIT_MS_MAX;
  const { pendingSends, unanswered: interrupted } = resource;
  resource.instruction += 1;
  const number = resource.instruction;
  const scope = new CancellationScope();
  resource.unanswered = { number, scope };
  resource.arrivesBy = Math.max(resource.arrivesBy, arrivesBy ?? 0);
  const earlierEnd = pendingSends.size > 0 ? finishSends(resource) : undefined;
  interrupted?.scope.cancel();
  if (earlierEnd !== undefined) await earlierEnd;
  const isOver = () => number !== resource.instruction || !isUnsent(resource.status);
  const log = (line: string) => record.logActivity(resource, line);
  const sending = new CancellationScope({ cancellable: true, parent: scope });
  const pendingSend: PendingSend = {
    scope: sending,
    cancelled: false,
    end: Promise.resolve(undefined),
  };
  const untilAnswered = async (): Promise<Answer | Outdated | undefined> => {
    let mayHaveArrived = arrivesBy !== undefined;
    let wasSent = false;
    let [wait, lookUpWait] = [WAIT_MS_MIN, LOOK_UP_WAIT_MS_MIN];
    while (!isOver()) {
      if (!mayHaveArrived) {
        pendingSends.add(pendingSend);
        const answer = await unlessLost(sending.run(send));
        // Also when it is over: a late answer must not be lost.
        if (answer !== undefined) return answer;
        pendingSends.delete(pendingSend);
        log('The instruction ended without an answer; the bank is asked what it knows of it.');
        [mayHaveArrived, wasSent, lookUpWait] = [true, true, LOOK_UP_WAIT_MS_MIN];
        continue;
      }
      const answer = await unlessLost(lookUp());
      if (answer !== undefined && !isUnknown(answer)) return answer;
      if (answer === undefined) {
        log(`The connector refused to look the ${noun} up; it is looked up again later.`);
        await sleep(lookUpWait, { summary: `Look the ${noun} up again` });
        lookUpWait = Math.min(lookUpWait * 2, waitMax);
      } else if (isOver()) {
        return undefined;
      } else if (arrivesBy !== undefined && Date.now() < arrivesBy) {
        // A connector may still execute it, so the answer is not final yet.
        await sleep(arrivesBy - Date.now(), { summary: `Ask about the ${noun} again` });
      } else if (wasSent) {
        log('The instruction never reached the bank; it is sent again.');
        await sleep(wait, { summary: `Send the ${noun} again` });
        wait = Math.min(wait * 2, waitMax);
        mayHaveArrived = false;
      } else {
        log('The bank does not know the instruction; it is sent.');
        mayHaveArrived = false;
      }
    }
    return undefined;
  };
  pendingSend.end = scope
    .run(untilAnswered)
    .catch((error: unknown) => {
      if (!isCancellation(error)) throw error;
    })
    .then((answer) => {
      if (answer) {
        encodeReference(answer);
        // At once, since a callback may overtake the answer.
        resource.bankReference = getReference(answer) || resource.bankReference;
        resource.inbox.push({ kind: 'answer', answer });
      }
      pendingSends.delete(pendingSend);
      if (resource.unanswered?.number === number) resource.unanswered = undefined;
      return answer ?? undefined;
    });
  await pendingSend.end;
}

function isUnknown<Answer extends BankAnswer>(answer: Answer | NotFound): answer is NotFound {
  return answer.outcome === 'not_found';
}

/** Encodes what no identifier may have, before the answer is stored or shown. */
export function encodeReference<Answer extends BankAnswer>(answer: Answer): Answer {
  const { bank_reference } = answer;
  if (bank_reference !== undefined) answer.bank_reference = readBankReference(bank_reference);
  return answer;
}

export function getReference({ bank_reference, transaction_id }: BankAnswer): string | undefined {
  return bank_reference ?? transaction_id;
}

/** @returns undefined where it may have arrived, or is not known */
async function unlessLost<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (!(error instanceof ActivityFailure) || isCancellation(error)) throw error;
    return undefined;
  }
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
  pendingSend.scope.cancel();
}

/**
 * Cancels unstarted attempts, and waits 30 seconds at most.
 * @returns the bank's answers, which are in the inbox
 */
async function finishSends(resource: InstructionState): Promise<unknown[]> {
  const earlier = [...resource.pendingSends];
  for (const pendingSend of earlier) cancelSend(pendingSend);
  const answers = await Promise.all(earlier.map(({ end }) => end));
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
  { isInstant = false } = {},
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
      retry: {
        initialInterval: '1s',
        backoffCoefficient: 2,
        maximumInterval: isInstant ? INSTANT_WAIT_MS_MAX : '2 minutes',
      },
      summary: `Ask the bank what it knows of the ${name}`,
    }),
  };
}

/** Short, since an operator waits. @see askBank */
const CANCEL_MS_MAX = 4_000;
const QUESTION_MS_MAX = 8_000;
/** Far longer than an idle worker takes to begin. */
const IDLE_MS_MAX = 1_000;

/**
 * Asks the bank for an operator, on the queue whose slots no instruction takes. Where nothing polls
 * it, as with a connector without the kit, the question is among the instructions, before those that wait.
 */
export function askForOperator<Activities extends object = ConnectorActivities>(
  connector: string,
  name: string,
) {
  const reserved = questionQueue(connector, readPrefix(workflowInfo().taskQueue));
  const place = { taskQueue: reserved, scheduleToStartTimeout: IDLE_MS_MAX };
  const first = questionActivities<Activities>(name, place);
  const second = questionActivities<Activities>(name, { taskQueue: bankQueue(connector) });
  return async <Answer>(ask: (activities: typeof first) => Promise<Answer>): Promise<Answer> => {
    try {
      return await ask(first);
    } catch (error) {
      const cause = error instanceof ActivityFailure ? error.cause : undefined;
      const isTimeout = cause instanceof TimeoutFailure;
      if (!isTimeout || cause.timeoutType !== 'SCHEDULE_TO_START') throw error;
      return await ask(second);
    }
  };
}

function questionActivities<Activities extends object>(
  name: string,
  place: { taskQueue: string; scheduleToStartTimeout?: number },
) {
  return {
    // A single attempt: a connector that cannot cancel has not registered it.
    canceller: proxyActivities<Required<Activities>>({
      ...place,
      scheduleToCloseTimeout: CANCEL_MS_MAX,
      priority: QUESTION_PRIORITY,
      retry: { maximumAttempts: 1 },
      summary: `Cancel the ${name} at the bank`,
    }),
    asker: proxyActivities<Required<Activities>>({
      ...place,
      scheduleToCloseTimeout: QUESTION_MS_MAX,
      priority: QUESTION_PRIORITY,
      retry: { initialInterval: '500ms', backoffCoefficient: 2 },
      summary: `Ask the bank whether it holds the ${name}`,
    }),
  };
}

export function bankQueue(connector: string): string {
  return connectorQueue(connector, readPrefix(workflowInfo().taskQueue));
}
