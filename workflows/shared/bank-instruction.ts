import { CancellationScope } from '@temporalio/workflow';
import type { Due } from './alarm';
import { SEND_MS_MAX } from './bank-activities';
import { type BankAnswer, type Earlier, type Instruction, instruct } from './bank-attempts';

const CANCEL_GRACE_MS = 5_000;

export interface InstructionState {
  /** Number of the newest instruction: only this one continues. */
  instruction: number;
  /** Attempts without an answer; no run ends before them. */
  readonly pendingSends: Set<PendingSend>;
  /** The bank's name for it, from its answer. */
  bankReference: string | undefined;
}

interface PendingSend {
  /** Cancels it if no connector has started it. */
  cancel: () => void;
  cancelled: boolean;
  /** Resolves when its instruction is over. */
  over: () => Promise<void>;
}

export function getEarlierInstruction(): Earlier {
  return { arrivesBy: Date.now() + SEND_MS_MAX };
}

/**
 * Instructs the bank and adds its answer to the inbox. An earlier instruction of this run ends
 * first, so that an operator does not wait for its next attempt. The `cancellationType` of `send`
 * must be WAIT_CANCELLATION_COMPLETED: only its end says whether the bank has the instruction.
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
  if (resource.pendingSends.size > 0) await finishSends(resource);
  let pendingSend: PendingSend | undefined;
  let over = Promise.resolve();
  const removeSend = () => {
    if (pendingSend !== undefined) resource.pendingSends.delete(pendingSend);
  };
  const send = async () => {
    const scope = new CancellationScope();
    pendingSend = { cancel: () => scope.cancel(), cancelled: false, over: () => over };
    resource.pendingSends.add(pendingSend);
    try {
      return await scope.run(instruction.send);
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
  };
  const isOver = () => number !== resource.instruction || instruction.isOver();
  over = instruct<Answer>({ ...instruction, send, isOver }, earlier).then(addAnswer);
  await over;
}

/** Cancels the attempts that no connector has started, when any started one has ended. */
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

/** Cancels the attempts that no connector has started, and waits 30 seconds at most. */
async function finishSends(resource: InstructionState): Promise<void> {
  const earlier = [...resource.pendingSends];
  for (const pendingSend of earlier) cancelSend(pendingSend);
  await Promise.all(earlier.map(({ over }) => over()));
}

/** Answers after which the bank moves no money. */
const NOT_TAKEN = ['refused', 'outdated'];

/** @returns whether the bank has accepted an attempt: its answer is in the inbox */
export async function stopInstructing(
  resource: InstructionState & { inbox: readonly { kind: string; answer?: unknown }[] },
): Promise<boolean> {
  resource.instruction += 1;
  await finishSends(resource);
  return resource.inbox.some(
    ({ kind, answer }) => kind === 'answer' && !NOT_TAKEN.includes(Object(answer).outcome),
  );
}
