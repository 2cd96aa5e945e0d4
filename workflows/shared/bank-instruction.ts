import { CancellationScope, isCancellation } from '@temporalio/workflow';
import type { Due } from './alarm';
import { SEND_MS_MAX } from './bank-activities';
import { type BankAnswer, type Earlier, type Instruction, instruct } from './bank-attempts';

const CANCEL_GRACE_MS = 5_000;

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
export async function giveInstruction<Answer extends BankAnswer>(
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
    .run(() => instruct<Answer>({ ...instruction, send, isOver }, earlier))
    .catch((error: unknown) => {
      if (isCancellation(error)) return undefined;
      throw error;
    });
  const end = answer.then(addAnswer);
  over = () => end;
  await end;
}

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
