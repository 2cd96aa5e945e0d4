import { ActivityFailure, CancellationScope, sleep } from '@temporalio/workflow';

/** An instruction to a bank that moves money, under one id. */
export interface Instruction<Answer> {
  /** In summaries and the journal: `refund`. */
  name: string;
  /** One attempt. */
  send: () => Promise<Answer>;
  /** Patient. */
  lookUp: () => Promise<Answer | { outcome: 'not_found' }>;
  /** Whether an answer is no longer needed. */
  isOver: () => boolean;
  tell: (line: string) => void;
  answered: (answer: Answer) => void;
}

/** Doubles; its bound keeps months of trying within the size of a history. */
const WAIT_MS_MIN = 1_000;
const LOOK_UP_WAIT_MS_MIN = 60_000;
const WAIT_MS_MAX = 3_600_000;

/**
 * Gives a bank its instruction, until it has answered or no answer is needed. One that ends without
 * an answer may have arrived: what the bank knows decides, and it is sent again, under the same id,
 * only when the bank does not know it.
 * @param lookUpFirst an earlier run may have sent it
 */
export async function instruct<Answer extends { outcome: string }>(
  instruction: Instruction<Answer>,
  lookUpFirst = false,
): Promise<void> {
  const { name, isOver, tell, answered } = instruction;
  let mayHaveArrived = lookUpFirst;
  let wait = WAIT_MS_MIN;
  while (!isOver()) {
    const answer = mayHaveArrived ? await lookUp(instruction) : await send(instruction);
    // Also when it is over: an answer that comes too late must not be lost.
    if (answer !== undefined && !isUnknown(answer)) return answered(answer);
    if (isOver()) return;
    if (answer === undefined) mayHaveArrived = true;
    else if (lookUpFirst && wait === WAIT_MS_MIN) {
      tell('The bank does not know the instruction; it is sent.');
      mayHaveArrived = false;
      wait *= 2;
    } else {
      tell('The instruction never reached the bank; it is sent again.');
      await sleep(wait, { summary: `Send the ${name} again` });
      mayHaveArrived = false;
      wait = Math.min(wait * 2, WAIT_MS_MAX);
    }
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

/** What a lifecycle remembers of the instruction that it gives. */
export interface Instructing {
  /** Counts the instructions given: only the newest one goes on. */
  instruction: number;
  /** One that is on its way to the bank. */
  sending: { cancel: () => void; ended: () => Promise<void> } | undefined;
}

/**
 * Lets `stopInstructing` take back an instruction that no connector has begun with. The activity's
 * `cancellationType` must be WAIT_CANCELLATION_COMPLETED: only its end tells what became of it.
 */
export async function stoppable<T>(
  life: Instructing,
  ended: () => Promise<void>,
  send: () => Promise<T>,
): Promise<T> {
  const scope = new CancellationScope();
  life.sending = { cancel: () => scope.cancel(), ended };
  try {
    return await scope.run(send);
  } finally {
    life.sending = undefined;
  }
}

/**
 * Nothing is sent from here on; one that is on its way is waited for, 30 seconds at most.
 * @returns whether the bank has taken it meanwhile: its answer is in the inbox
 */
export async function stopInstructing(
  life: Instructing & { inbox: readonly { kind: string; answer?: unknown }[] },
): Promise<boolean> {
  life.instruction += 1;
  const { sending } = life;
  if (sending !== undefined) {
    sending.cancel();
    await sending.ended();
  }
  return life.inbox.some(
    ({ kind, answer }) => kind === 'answer' && Object(answer).outcome !== 'refused',
  );
}
