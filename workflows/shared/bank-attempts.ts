import { ActivityFailure, sleep } from '@temporalio/workflow';

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

/** An earlier instruction that may have arrived. */
export interface Earlier {
  /** In ms since the epoch: until then a bank that does not know it may still be reading it. */
  arrivesBy: number;
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
export async function instruct<Answer extends { outcome: string }>(
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
